/** Connection strings to the databases of one server. */

/** The same server, role and options, another database. */
export const withDatabase = (url: string, database: string): string =>
  url.replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, `$1${database}`);
