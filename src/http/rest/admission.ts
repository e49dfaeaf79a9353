/** Everything that is decided before a body is read, in the order the contract fixes. (rest-contract 1.1 steps 0 to 5 and 7, client-expectations CX-20) */
import type { IncomingMessage } from 'node:http';
import type { Authenticate } from '../../iam/authenticate.ts';
import type { Caller } from '../../iam/caller.ts';
import { Refusal } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { invalidRequest } from '../../kernel/parse.ts';
import type { AssertTransport } from '../transport.ts';
import { defaultBodyLimit, parametersOf, type Route } from './route.ts';

export type Admit = (request: IncomingMessage, params: Readonly<Record<string, string>>, requestId: string) => Promise<Caller>;

/** The admission of one route. @throws Refusal for the first check that fails */
export const createAdmission = (
  { path, body, bodyLimit = defaultBodyLimit }: Route,
  { authenticate, assertTransport }: { readonly authenticate: Authenticate; readonly assertTransport: AssertTransport },
): Admit => {
  const parameters = parametersOf(path);

  return async (request, params, requestId) => {
    const { headers, url = '' } = request;
    const declaredLength = Number(headers['content-length'] ?? 0);
    if (declaredLength > bodyLimit) throw new Refusal('PAYLOAD_TOO_LARGE', `The body is limited to ${bodyLimit} bytes`);
    if (url.includes('?') || url.includes('#')) throw new Refusal('INVALID_REQUEST', 'This route takes no query string');
    const malformed = parameters.filter(({ name, prefix }) => !isId(prefix, params[name] ?? ''));
    if (malformed.length > 0) throw invalidRequest(malformed.map(({ name }) => ({ path: `/${name}`, code: 'INVALID_FORMAT' })));
    assertTransport(request);
    const caller = await authenticate(headers, requestId);
    const carriesBody = declaredLength > 0 || headers['transfer-encoding'] !== undefined;
    if (body === undefined && carriesBody) throw new Refusal('INVALID_REQUEST', 'This route takes no body');
    return caller;
  };
};
