/** Everything that is decided before a body is read, in the order the contract fixes. (rest-contract 1.1 steps 0 to 5 and 7, client-expectations CX-20) */
import type { IncomingMessage } from 'node:http';
import type { Authenticate } from '../../iam/authenticate.ts';
import { unauthenticated, type Caller, type Visitor } from '../../iam/caller.ts';
import { Refusal } from '../../kernel/errors.ts';
import { invalidRequest } from '../../kernel/parse.ts';
import type { Transport } from '../transport.ts';
import { defaultBodyLimit, parametersOf, type Route } from './route.ts';

export type Admit = (request: IncomingMessage, params: Readonly<Record<string, string>>, requestId: string) => Promise<Caller | Visitor>;

/** The admission of one route. @throws Refusal for the first check that fails */
export const createAdmission = (
  { path, body, bodyLimit = defaultBodyLimit, access = 'caller', origin }: Route,
  { authenticate, transport }: { readonly authenticate: Authenticate; readonly transport: Transport },
): Admit => {
  const parameters = parametersOf(path).map(({ name, pattern }) => ({ name, pattern: new RegExp(pattern) }));

  return async (request, params, requestId) => {
    const arrivedAt = performance.now();
    const { headers, url = '' } = request;
    const declaredLength = Number(headers['content-length'] ?? 0);
    if (declaredLength > bodyLimit) throw new Refusal('PAYLOAD_TOO_LARGE', `The body is limited to ${bodyLimit} bytes`);
    if (access === 'human' && headers['x-api-key'] !== undefined) throw unauthenticated();
    if (url.includes('?') || url.includes('#')) throw new Refusal('INVALID_REQUEST', 'This route takes no query string');
    const malformed = parameters.filter(({ name, pattern }) => !pattern.test(params[name] ?? ''));
    if (malformed.length > 0) throw invalidRequest(malformed.map(({ name }) => ({ path: `/${name}`, code: 'INVALID_FORMAT' })));
    transport.assert(request, origin);
    const visitor = (): Visitor => ({ headers, clientAddress: transport.clientAddress(request), peerAddress: request.socket.remoteAddress ?? '', arrivedAt, requestId });
    const caller = access === 'public' ? visitor() : await authenticate(headers, requestId);
    const carriesBody = declaredLength > 0 || headers['transfer-encoding'] !== undefined;
    if (body === undefined && carriesBody) throw new Refusal('INVALID_REQUEST', 'This route takes no body');
    return caller;
  };
};
