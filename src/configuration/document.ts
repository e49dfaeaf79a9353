/** Checks of a native document: provider endpoints, and no literal credential in a known field. (rest-contract 3.3, architecture section 10) */
import { Refusal, type Detail } from '../kernel/errors.ts';
import { escapePointer } from '../kernel/parse.ts';

type Document = Readonly<Record<string, unknown>>;

const apis = new Set(['openai-responses', 'openai-completions', 'openai-codex-responses', 'anthropic-messages', 'google-generative-ai', 'github-copilot', 'bedrock-converse-stream', 'ollama']);
const credentialHeader = /^(authorization|proxy-authorization|x-api-key|api-key|x-goog-api-key)$/i;
const credentialVariable = /(^|_)(API_?KEY|TOKEN|SECRET|PASSWORD|ACCESS_?KEY|CREDENTIALS?)$/i;

const isObject = (value: unknown): value is Document => typeof value === 'object' && value !== null && !Array.isArray(value);
const entries = (value: unknown): readonly (readonly [string, unknown])[] => (isObject(value) || Array.isArray(value) ? Object.entries(value) : []);
const member = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);

/** A text that names a value elsewhere (`${VAR}`) or holds nothing. */
const isReference = (text: string): boolean => text.trim() === '' || /\$\{[^}]+\}/.test(text);
const isLiteral = (value: unknown): boolean => typeof value === 'string' && !isReference(value);

const isHttpUrl = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:');
};

const endpointProblems = (path: string, provider: unknown): readonly Detail[] => {
  const baseUrl = member(provider, 'baseUrl');
  const api = member(provider, 'api');
  const problems: Detail[] = [];
  if (baseUrl !== undefined && (typeof baseUrl !== 'string' || !(isReference(baseUrl) || isHttpUrl(baseUrl))))
    problems.push({ path: `${path}/baseUrl`, code: 'INVALID_VALUE' });
  if (api !== undefined && (typeof api !== 'string' || !(isReference(api) || apis.has(api)))) problems.push({ path: `${path}/api`, code: 'INVALID_VALUE' });
  return problems;
};

const headerProblems = (path: string, owner: unknown): readonly Detail[] =>
  entries(member(owner, 'headers'))
    .filter(([name, value]) => credentialHeader.test(name) && isLiteral(value))
    .map(([name]) => ({ path: `${path}/headers/${escapePointer(name)}`, code: 'INVALID_VALUE' }) as const);

const credentialProblems = (path: string, owner: unknown): readonly Detail[] => [
  ...(isLiteral(member(owner, 'apiKey')) ? [{ path: `${path}/apiKey`, code: 'INVALID_VALUE' } as const] : []),
  ...headerProblems(path, owner),
];

const providerProblems = (path: string, provider: unknown): readonly Detail[] => [
  ...endpointProblems(path, provider),
  ...credentialProblems(path, provider),
  ...entries(member(provider, 'models')).flatMap(([index, model]) => [
    ...endpointProblems(`${path}/models/${escapePointer(index)}`, model),
    ...credentialProblems(`${path}/models/${escapePointer(index)}`, model),
  ]),
];

const environmentProblems = (path: string, environment: unknown): readonly Detail[] =>
  entries(environment)
    .filter(([name, value]) => credentialVariable.test(name) && isLiteral(value))
    .map(([name]) => ({ path: `${path}/${escapePointer(name)}`, code: 'INVALID_VALUE' }) as const);

/** At most 512 characters, and no half of an escape at the end. */
const pointer = (path: string): string => path.slice(0, 512).replace(/~$/, '');

/**
 * Refuses a document with an unusable provider endpoint or a literal credential.
 * @throws Refusal INVALID_REQUEST naming the field inside `values`, never its value
 */
export const assertDocument = (values: Document): void => {
  const env = member(values, 'env');
  const problems = [
    ...entries(member(member(values, 'models'), 'providers')).flatMap(([name, provider]) => providerProblems(`/values/models/providers/${escapePointer(name)}`, provider)),
    ...environmentProblems('/values/env', env),
    ...environmentProblems('/values/env/vars', member(env, 'vars')),
  ];
  if (problems.length === 0) return;
  const details = problems.map(({ path, code }) => ({ path: pointer(path), code }));
  throw new Refusal('INVALID_REQUEST', `The document cannot be saved: ${details[0]!.path} holds a literal credential or an unusable value`, { details });
};
