/** A REST route as data: the one description that the server, its table of methods and the OpenAPI document are made of. */
import type { Static, TSchema } from 'typebox';
import type { Caller, Visitor } from '../../iam/caller.ts';
import { idPattern, opaquePattern, type Prefix } from '../../kernel/ids.ts';
import type { Sent } from '../../kernel/parse.ts';
import type { Services } from '../../services.ts';
import type { SessionCookie } from '../session-cookie.ts';
import type { OriginRule } from '../transport.ts';
import type { Resource } from './resources.ts';

type ParameterOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParameterOf<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** A permission as the OpenAPI document names it. (rest-contract 1.12) */
export interface RoutePermission {
  readonly action: string;
  readonly resourceKind: string;
  readonly scope: 'requested' | 'installation' | 'namespace' | 'each_returned' | 'request_body';
  readonly condition?: 'existing_namespace' | 'bound_secret' | 'associated_service_account' | 'missing_runtime_credentials' | 'iam_binding_target';
}

/** Who may call: anybody, whoever stands behind it; a session or a service key; or a session alone, where a key is refused before all else. */
export type Access = 'public' | 'caller' | 'human';

export interface RouteRequest<Path extends string, Body, A extends Access = 'caller'> {
  readonly caller: A extends 'public' ? Visitor : Caller;
  readonly params: { readonly [Name in ParameterOf<Path>]: string };
  /** For whoever judges the caller to open; where anybody may ask, open already. Undefined where none was sent. */
  readonly body: Body;
  /** From the header of that name, on routes that take it. */
  readonly idempotencyKey: string | undefined;
  /** The version `If-Match` asks for, on routes that take it. */
  readonly ifMatch: number | undefined;
}

type BodyOf<Body extends TSchema | undefined, A extends Access> = Body extends TSchema ? (A extends 'public' ? Static<Body> : Sent<Static<Body>>) : undefined;

interface Definition<Path extends string, Body extends TSchema | undefined, View, A extends Access> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: Path;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly permissions: readonly RoutePermission[];
  /** `caller` without it. */
  readonly access?: A;
  /** `cookie` without it. */
  readonly origin?: OriginRule;
  /** Absent on bodyless routes, which refuse every byte. */
  readonly body?: Body;
  /** The body may be left out. */
  readonly bodyOptional?: true;
  /** The caller's identity comes before the shape of the body too. (iam-auth-audit 2.6) */
  readonly bodyUnread?: true;
  /** In bytes. */
  readonly bodyLimit?: number;
  /** Optional request headers this route honours. */
  readonly takes?: 'Idempotency-Key' | 'If-Match';
  readonly status: 200 | 201 | 202 | 204;
  /** Absent where the answer is 204. */
  readonly answer?: Resource<View>;
  /** The session cookie a success sets. */
  readonly cookie?: (view: View) => SessionCookie;
  /** Statuses of refusals beyond those of its kind of route. */
  readonly alsoAnswers?: readonly number[];
  readonly handle: (services: Services, request: RouteRequest<Path, BodyOf<Body, A>, A>) => Promise<View>;
}

/** A route whose parameters, body and view no longer show in its type. */
export type Route = Omit<Definition<string, TSchema | undefined, never, Access>, 'answer' | 'cookie' | 'handle'> & {
  readonly answer?: Resource<unknown>;
  readonly cookie?: (view: unknown) => SessionCookie;
  readonly handle: (services: Services, request: Omit<RouteRequest<string, unknown>, 'caller'> & { readonly caller: Caller | Visitor }) => Promise<unknown>;
};

/** Checks a definition against the types its path, body and answer imply. */
export const route = <const Path extends string, View, Body extends TSchema | undefined = undefined, A extends Access = 'caller'>(definition: Definition<Path, Body, View, A>): Route =>
  definition as unknown as Route;

/** Bytes a request body may have where its route says nothing else. */
export const defaultBodyLimit = 65_536;
/** Bytes the largest body of any route may have: an Agent with its initial workspace files. */
export const largestBodyLimit = 458_752;

const prefixes: Readonly<Record<string, Prefix | undefined>> = { namespaceId: 'ns', configurationId: 'cfg', agentId: 'agt', revisionId: 'rev', deploymentId: 'rev' };
const opaqueNames = new Set(['userId', 'methodId', 'roleId', 'bindingId', 'keyId', 'servicePrincipalId']);

/** The parameters of a path in order, each with the pattern of the ids it takes, and their prefix where they have one. */
export const parametersOf = (path: string): readonly { readonly name: string; readonly prefix: Prefix | undefined; readonly pattern: string }[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const prefix = prefixes[name];
    if (prefix === undefined && !opaqueNames.has(name)) throw new Error(`Path parameter ${name} of ${path} names no kind of id`);
    return { name, prefix, pattern: prefix === undefined ? opaquePattern : idPattern(prefix) };
  });
