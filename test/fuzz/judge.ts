/** What every answer has to be, whatever was asked, and what a request may leave in the history. (rest-contract 1.2, 1.3, 1.7, 4.1; iam-auth-audit 5.1, 8.7) */
import type { Route } from '../../src/http/rest/route.ts';
import { routes } from '../../src/http/rest/routes.ts';
import { statusOf } from '../../src/http/errors.ts';
import { codes, Refusal, type Code } from '../../src/kernel/errors.ts';
import { validator } from '../../src/kernel/parse.ts';
import type { RecordedEvent } from '../support/request-events.ts';
import type { FuzzAnswer } from './client.ts';
import type { FuzzRequest } from './rest-requests.ts';

type Json = Readonly<Record<string, unknown>>;

interface Shown {
  readonly code: Code;
  readonly message: string;
  readonly status: number;
}

/** One answer, read: every refusal it shows, and whether it shows a success. */
export interface Verdict {
  readonly requestId: string | undefined;
  readonly refusals: readonly Shown[];
  readonly succeeded: boolean;
  /** A stream that was left before it told anything. */
  readonly silent?: boolean;
  /** What is wrong with it. */
  readonly faults: readonly string[];
}

const operatorPaths = /^\/(?:healthz|readyz|metrics|openapi\.json)$/;
const requestIdForm = /^req_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const pointerForm = /^(?:\/(?:[^~/]|~0|~1)*)*$/;
const controlCharacters = /[\u0000-\u001f\u007f]/;
const detailCodes = new Set(['REQUIRED', 'UNKNOWN_FIELD', 'INVALID_TYPE', 'INVALID_FORMAT', 'INVALID_VALUE', 'TOO_LONG', 'TOO_DEEP']);
/** What a request can bring about while the stores are well: there is no worker here whom diagnostics could ask. */
const isPossible = (code: string, { route, body }: FuzzRequest): boolean =>
  code === 'DEPENDENCY_UNAVAILABLE' ? /^diagnose/.test(route?.operationId ?? '') || body?.includes('diagnose') === true : code !== 'INTERNAL_ERROR';

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const membersOf = (value: object): string => Object.keys(value).toSorted().join(' ');

const headerFaults = ({ status, headers, body }: FuzzAnswer, contentType: RegExp): string[] => {
  const faults: string[] = [];
  const expect = (holds: boolean, what: string) => void (holds || faults.push(what));
  expect(headers['cache-control'] === 'no-store', `cache-control is ${String(headers['cache-control'])}`);
  expect(headers['x-content-type-options'] === 'nosniff', `x-content-type-options is ${String(headers['x-content-type-options'])}`);
  expect(requestIdForm.test(String(headers['x-request-id'])), `x-request-id is ${String(headers['x-request-id'])}`);
  expect(contentType.test(String(headers['content-type'])), `content-type is ${String(headers['content-type'])}`);
  expect(status !== 204 || body === '', 'a 204 has a body');
  expect(status !== 405 || typeof headers['allow'] === 'string', 'a 405 without Allow');
  expect(status !== 429 || /^[1-9][0-9]*$/.test(String(headers['retry-after'])), `a 429 with Retry-After ${String(headers['retry-after'])}`);
  return faults;
};

const refusalFaults = (request: FuzzRequest, shown: Json, requestId: unknown, answered: number | undefined): string[] => {
  const { code, message, details, status } = shown;
  if (typeof code !== 'string' || !(code in codes)) return [`the code ${String(code)} is in no list`];
  const documented = statusOf(new Refusal(code as Code, 'a'));
  const faults: string[] = [];
  const expect = (holds: boolean, what: string) => void (holds || faults.push(what));
  expect(isPossible(code, request), `${code} while the stores are well`);
  expect((answered ?? status) === documented, `${code} with the status ${String(answered ?? status)}`);
  expect(typeof message === 'string' && message.length >= 1 && message.length <= 256 && !controlCharacters.test(message), `the message ${JSON.stringify(message)}`);
  expect(shown['requestId'] === undefined || shown['requestId'] === requestId, 'a refusal with the id of another request');
  if (details !== undefined) {
    const list = details as readonly Json[];
    expect(Array.isArray(details) && list.length <= 32, `details ${JSON.stringify(details)}`);
    for (const { path, code: detail } of list) expect(typeof path === 'string' && path.length <= 512 && pointerForm.test(path) && detailCodes.has(String(detail)), `the detail ${JSON.stringify({ path, code: detail })}`);
  }
  return faults;
};

const parsed = (text: string): Json | undefined => {
  try {
    const value = JSON.parse(text) as unknown;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

const shownOf = ({ code, message }: Json, status: number): Shown => ({ code: code as Code, message: String(message), status });

const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');

/** The route that answers a request, whatever it was made from. */
const routeOf = ({ method, target }: FuzzRequest): Route | undefined =>
  routes.find((route) => route.method === method && new RegExp(`^${route.path.replaceAll(/:\w+/g, '[^/]+')}$`).test(pathOf(target)));

const judgeRest = (request: FuzzRequest, answer: FuzzAnswer): Verdict => {
  const { method } = request;
  const route = routeOf(request);
  const { status, headers, body } = answer;
  const requestId = headers['x-request-id'] as string | undefined;
  const faults = headerFaults(answer, /^application\/json; charset=utf-8$/);
  const none = { requestId, refusals: [], succeeded: status < 300, faults };
  if (status === 204 || method === 'HEAD') return none;
  const envelope = parsed(body);
  if (envelope === undefined) return { ...none, faults: [...faults, 'the body is no JSON object'] };
  if (JSON.stringify(envelope['meta']) !== JSON.stringify({ requestId })) faults.push(`meta is ${JSON.stringify(envelope['meta'])}, the header says ${requestId}`);
  if (status < 300) {
    if (membersOf(envelope) !== 'data meta') faults.push(`a success with the members ${membersOf(envelope)}`);
    const validate = validator(route?.answer?.schema ?? {});
    if (route === undefined || status !== route.status) faults.push(`${status} from a route that gives ${route?.status}`);
    else if (!validate(envelope['data'])) faults.push(`the data is not what the route documents: ${JSON.stringify(validate.errors?.slice(0, 3).map(({ instancePath, message }) => `${instancePath} ${message}`))}`);
    return none;
  }
  const error = envelope['error'];
  if (membersOf(envelope) !== 'error meta' || !isObject(error)) return { ...none, faults: [...faults, `an error with the members ${membersOf(envelope)}`] };
  if (!/^code (?:details )?message$/.test(membersOf(error))) faults.push(`an error of ${membersOf(error)}`);
  return { ...none, refusals: [shownOf(error, status)], faults: [...faults, ...refusalFaults(request, error, requestId, status)] };
};

/** The members of the answer's fields that name a refusal, wherever they stand. */
const refusalsIn = (value: unknown): readonly Json[] => {
  if (Array.isArray(value)) return value.flatMap(refusalsIn);
  if (!isObject(value)) return [];
  return value['__typename'] === 'Refusal' ? [value] : Object.values(value).flatMap(refusalsIn);
};

/** Root fields that gave a payload. */
const hasPayload = (data: unknown): boolean => isObject(data) && Object.values(data).some((field) => isObject(field) && String(field['__typename']).endsWith('Payload'));

const judgeGraphql = (request: FuzzRequest, answer: FuzzAnswer): Verdict => {
  const { method } = request;
  const { status, headers, body } = answer;
  const requestId = headers['x-request-id'] as string | undefined;
  const streams = String(headers['content-type']).startsWith('text/event-stream');
  const faults = headerFaults(answer, /^(?:application\/(?:json|graphql-response\+json); charset=utf-8|text\/event-stream)/);
  const none: Verdict = { requestId, refusals: [], succeeded: false, faults };
  const told = streams ? /^data: (\{[^\r\n]*)/m.exec(body)?.[1] : body;
  if (method === 'HEAD' || told === undefined) return { ...none, silent: streams };
  const result = parsed(told);
  if (result === undefined) return { ...none, faults: [...faults, 'the body is no JSON object'] };
  if (!/^(?:data|errors|data errors)$/.test(membersOf(result))) faults.push(`a result with the members ${membersOf(result)}`);
  const errors = (result['errors'] ?? []) as readonly { readonly message: string; readonly extensions?: Json }[];
  if (result['errors'] !== undefined && errors.length === 0) faults.push('an empty list of errors');
  const shown = [...errors.map(({ message, extensions }) => ({ message, ...extensions })), ...refusalsIn(result['data'])] as readonly Json[];
  const carried = shown.map(({ status: own }) => Number(own));
  if (![200, 400, 401, 403, 405, 413, 415, 429].includes(status)) faults.push(`the status ${status}`);
  if (status >= 400 && !carried.includes(status)) faults.push(`the status ${status} over errors of ${carried.join(', ')}`);
  return {
    requestId,
    refusals: shown.map((one) => shownOf(one, Number(one['status']))),
    succeeded: hasPayload(result['data']),
    faults: [...faults, ...shown.flatMap((one) => refusalFaults(request, one, requestId, undefined))],
  };
};

const isGraphql = (target: string): boolean => target === '/graphql' || target.startsWith('/graphql?');

/** Reads an answer and tells what is wrong with it. */
export const judgeAnswer = (request: FuzzRequest, answer: FuzzAnswer): Verdict => {
  if (isGraphql(request.target)) return judgeGraphql(request, answer);
  if (operatorPaths.test(pathOf(request.target)) && answer.status === 200) return { requestId: undefined, refusals: [], succeeded: false, faults: headerFaults(answer, /^(?:application\/json|text\/plain)/) };
  return judgeRest(request, answer);
};

/** Whether a refusal is recorded as a denial. */
const isDenial = ({ code, message }: Shown): boolean => (code === 'FORBIDDEN' ? !ofTheWay.test(message) : message === 'Email and password do not belong together');

/** What is written before a change and binds nobody without it: a refusal that only the change itself meets finds it written. */
const intents: ReadonlySet<string> = new Set(['ResourceAdmitted', 'ServicePrincipalCreated', 'AgentRevisionSnapshotted']);

/** Refusals of the way a request came by, which are nobody's denial. */
const ofTheWay = /^(?:Forwarding headers|In development mode|A trusted browser origin)/;

/** What is wrong with the events of a request. */
export const judgeEvents = ({ method, target }: FuzzRequest, { refusals, succeeded, silent = false }: Verdict, events: readonly RecordedEvent[]): readonly string[] => {
  const types = events.map(({ type }) => type);
  const denials = events.filter(({ metadata: { audit } }) => audit?.kind === 'authorization_denial');
  const failures = events.filter(({ type }) => type === 'CommandFailed');
  const late = refusals.some(({ status }) => status === 409);
  const changes = events.filter((event) => !denials.includes(event) && !failures.includes(event) && !(late && intents.has(event.type))).length;
  const denied = refusals.filter(isDenial).length;
  const unready = refusals.filter(({ code }) => code === 'NAMESPACE_NOT_READY').length;
  const faults: string[] = [];
  if (isGraphql(target)) {
    // A refusal that several fields share is recorded once.
    if (denied === 0 ? denials.length > 0 && !silent : denials.length === 0 || denials.length > denied) faults.push(`${denied} denied fields left ${denials.length} denials`);
  } else if (denials.length !== denied) faults.push(`a request of ${denied} denials left ${denials.length}`);
  if (failures.length > unready) faults.push(`${unready} audited failures left ${failures.length}`);
  if (changes > 0 && (!succeeded || method === 'GET')) faults.push('a request that changed nothing left changes');
  return faults.map((fault) => `${fault}: ${types.join(', ') || 'no event'}`);
};
