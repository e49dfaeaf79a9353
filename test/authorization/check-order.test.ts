/**
 * The checks that follow the credential, on every route and on the field that mirrors it: of two that fail the earlier one
 * answers, and is all that is recorded. The earlier ones: ../http/check-order.test.ts. (rest-contract 1.1 steps 8 to 12, iam-auth-audit 2.6)
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { routes } from '../../src/http/rest/routes.ts';
import { everyPermission } from '../../src/iam/permissions.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { newId } from '../../src/kernel/ids.ts';
import { openApi } from '../scenarios/replica.ts';
import { openOperator, type TestOperator } from '../support/principals.ts';
import { eventsOf } from '../support/request-events.ts';
import { pageHeaders } from '../support/sign-in.ts';
import { edges, send, sendGraphql, type Answer, type EdgeName, type UseCase } from '../support/use-cases.ts';
import { asked, existing, type Asked } from './asked.ts';
import { createFixture, judged, type Fixture, type Names } from './fixture.ts';

const checks = ['shape', 'identity', 'safety', 'installation', 'authorization'] as const;
type Check = (typeof checks)[number];
type Credentials = Readonly<Record<string, string>>;
interface Somebody {
  readonly id: string;
  readonly key: Credentials;
  readonly page: Credentials;
}

/** An Installation, or what there is before one: its API, and who calls it. */
interface World {
  readonly origin: string;
  readonly names: Names;
  readonly permitted: Somebody;
  readonly stranger: Somebody;
  /** May do everything, in another Namespace. */
  readonly foreign: Pick<Somebody, 'id' | 'key'>;
  /** Has a session, and an account without a Principal. */
  readonly nobody: Credentials;
  /** While something is done, no event of this type can be stored. */
  readonly failing: <T>(type: string, act: () => Promise<T>) => Promise<T>;
  close(): Promise<void>;
}

let fixture: Fixture;
let founded: World;
let unfounded: World;

const openWorld = async (installationId: string): Promise<World> => {
  const api = await openApi(fixture.application, installationId, installationId);
  const { origin, close } = await api.serve();
  const operator: TestOperator = await openOperator({ origin, database: fixture.application.database }, installationId);
  const somebody = async (permissions: typeof everyPermission): Promise<Somebody> => {
    const [principal, person] = [await operator.principal(), await operator.person()];
    if (permissions.length > 0) for (const { grant } of [principal, person]) await grant(permissions);
    return { id: principal.id, key: { 'x-api-key': principal.key }, page: pageHeaders(person.cookie) };
  };
  const { id, key, grant } = await operator.principal({ namespaceId: fixture.names['N2'] });
  await grant(everyPermission, { namespaceId: fixture.names['N2']! });
  return {
    origin,
    names: { ...fixture.names, INSTALLATION: installationId },
    permitted: await somebody(everyPermission),
    stranger: await somebody([]),
    foreign: { id, key: { 'x-api-key': key } },
    nobody: pageHeaders((await operator.person({ known: false })).cookie),
    failing: api.failing,
    close: async () => {
      await close();
      await operator.close();
      await api.close();
    },
  };
};

beforeAll(async () => {
  fixture = await createFixture();
  founded = await openWorld(fixture.operator.installationId);
  unfounded = await openWorld(newId('ins'));
});
afterAll(async () => {
  await founded?.close();
  await unfounded?.close();
  await fixture?.close();
});

/** What makes a body unsafe, where it fails, and what makes it misshapen as well. */
interface Spoiled {
  readonly unsafe?: object;
  readonly unsafeAt?: string;
  readonly misshapen: object;
  readonly problem: { readonly path: string; readonly code: string };
}

const surrogate = '\ud800';
const named: Spoiled = { unsafe: { name: surrogate }, unsafeAt: '/name', misshapen: { name: ` ${surrogate}` }, problem: { path: '/name', code: 'INVALID_FORMAT' } };
const documented: Spoiled = { unsafe: { values: { constructor: 1 } }, unsafeAt: '/values/constructor', misshapen: { values: [{ constructor: 1 }] }, problem: { path: '/values', code: 'INVALID_TYPE' } };
const plugin = (enabled: unknown) => ({ plugins: { a: { enabled, driverPolicy: { constructor: 1 } } } });
const drafted: Spoiled = { unsafe: plugin(true), unsafeAt: '/plugins/a/driverPolicy/constructor', misshapen: plugin(1), problem: { path: '/plugins/a/enabled', code: 'INVALID_TYPE' } };
const controlled: Spoiled = { unsafe: { prototype: 1 }, unsafeAt: '/prototype', misshapen: [{ prototype: 1 }], problem: { path: '', code: 'INVALID_TYPE' } };

const bodies: Readonly<Record<string, Spoiled>> = {
  createNamespace: named,
  createConfiguration: documented,
  updateConfiguration: documented,
  createAgent: drafted,
  updateAgent: drafted,
  createRole: named,
  createAccessBinding: { unsafe: { subjectId: surrogate }, unsafeAt: '/subjectId', misshapen: { subjectId: surrogate.repeat(201) }, problem: { path: '/subjectId', code: 'TOO_LONG' } },
  // Nothing is an empty object and unsafe.
  createServicePrincipal: { misshapen: { constructor: 1 }, problem: { path: '/constructor', code: 'UNKNOWN_FIELD' } },
  issueServiceKey: { unsafe: { name: surrogate }, unsafeAt: '/name', misshapen: { name: surrogate.repeat(33) }, problem: { path: '/name', code: 'TOO_LONG' } },
  createAccount: { unsafe: { name: surrogate }, unsafeAt: '/name', misshapen: { name: surrogate.repeat(201) }, problem: { path: '/name', code: 'TOO_LONG' } },
};

const accounts = routes.filter(({ path, access }) => access === 'human' && path !== '/api/auth/sign-out');
const verbs: Readonly<Record<string, string>> = { createAccount: 'create', getAccount: 'read', disableAccount: 'disable', enableAccount: 'enable', enrolAccount: 'enrol', revokeAccountSessions: 'revoke', detachAccountMethod: 'detach', attachAccountGithub: 'attach', attachAccountGoogle: 'attach', attachAccountOidc: 'attach', getRecovery: 'recovery.read', designateRecovery: 'recovery.designate' };

/** Asked with a session: a key is refused for being one. */
const isForPeople = (operationId: string): boolean => verbs[operationId] !== undefined || operationId === 'getAgentNativeAdmin';

/** The routes of people alone, which no field mirrors. */
const askedOfAccounts = (operationId: string): Asked => {
  const { method, path, body } = accounts.find((route) => route.operationId === operationId)!;
  const action = `openclaw.auth.accounts.${verbs[operationId]}`;
  const sent = operationId === 'createAccount' ? { email: 'a@b', password: 'correct horse battery' } : {};
  const rest = { method, path: path.replaceAll(/:\w+/g, 'any'), ...(body !== undefined && { body: sent }) };
  return { useCase: { action: { REST: action, GraphQL: action }, rest, graphql: { document: '', variables: {}, at: [] } }, refused: 'installation:administer' };
};

const spoiled = (operationId: string): Spoiled | undefined => {
  const { body, access } = routes.find((route) => route.operationId === operationId)!;
  return body === undefined ? undefined : (bodies[operationId] ?? (access === 'human' ? controlled : expect.fail(`No body of ${operationId} is known that is unsafe`)));
};

const withBody = ({ rest, graphql, ...useCase }: UseCase, change: object): UseCase => ({
  ...useCase,
  rest: { ...rest, body: Array.isArray(change) ? change : { ...(rest.body as object), ...change } },
  graphql: { ...graphql, variables: { input: { ...(graphql.variables as { input?: object }).input, ...change } } },
});

const orderOf = (operationId: string): readonly Check[] => (operationId === 'createAccount' ? ['identity', 'shape', ...checks.slice(2)] : checks);

/** Whether an operation has a check on an edge that a request can fail. */
const applies = (check: Check, operationId: string, edge: EdgeName): boolean => {
  const body = spoiled(operationId);
  switch (check) {
    case 'shape':
      return body !== undefined && (edge === 'REST' || body.unsafe !== undefined);
    case 'safety':
      return body?.unsafe !== undefined;
    case 'authorization':
      return operationId !== 'listNamespaces';
    default:
      return true;
  }
};

/** Answers a request that fails these checks, and which records it left. */
const fail = async (edge: EdgeName, operationId: string, broken: readonly Check[], identity: 'a foreign key' | 'nobody') => {
  const world = broken.includes('installation') ? unfounded : founded;
  const one = verbs[operationId] !== undefined ? askedOfAccounts(operationId) : asked(world.names, existing)[operationId]!;
  const body = spoiled(operationId);
  const change = broken.includes('shape') ? body!.misshapen : broken.includes('safety') ? body!.unsafe! : undefined;
  const by = broken.includes('authorization') ? world.stranger : world.permitted;
  const known = isForPeople(operationId) ? by.page : by.key;
  const credentials = !broken.includes('identity') ? known : identity === 'nobody' ? world.nobody : world.foreign.key;
  const answer = await send(edge, world.origin, change === undefined ? one.useCase : withBody(one.useCase, change), credentials);
  return { answer, one, world, events: await eventsOf(fixture.application.database, answer.requestId) };
};

const told = ({ status, code, message, details }: Answer) => ({ status, code, message, details });
const invalid = (problem: object) => ({ status: 400, code: 'INVALID_REQUEST', details: [problem] });

/** Expects what one check answers, and records. */
const expectAnswer = ({ answer, one, world, events }: Awaited<ReturnType<typeof fail>>, check: Check, edge: EdgeName, operationId: string, identity: 'a foreign key' | 'nobody'): void => {
  const body = spoiled(operationId);
  const isService = operationId.endsWith('ServiceKey');
  const answers = {
    shape: body && invalid(body.problem),
    safety: body && invalid({ path: body.unsafeAt, code: 'INVALID_VALUE' }),
    installation: { status: isService ? 409 : 404, code: isService ? 'RESOURCE_CONFLICT' : 'NOT_FOUND', message: 'The Installation does not exist yet' },
    identity: { status: 403, code: 'FORBIDDEN', message: 'You do not have permission for this operation', details: [] },
    authorization: { status: 403, code: 'FORBIDDEN', message: 'You do not have permission for this operation', details: [] },
  };
  expect(told(answer)).toMatchObject(answers[check]!);
  if (check !== 'identity' && check !== 'authorization') return expect(events).toEqual([]);

  const refused = (edge === 'GraphQL' ? one.refusedInGraphql : undefined) ?? one.refused ?? 'namespace:read';
  const denied = check === 'authorization' ? undefined : identity === 'nobody' ? 'unresolved' : world.foreign.id;
  const { principalId: _, ...authorization } = judged(world.names, '', refused);
  const { resource } = judged(world.names, '', one.about ?? refused);
  const reason = check === 'authorization' ? 'No explicit grant in scope' : identity === 'nobody' ? 'The identity is unknown' : 'The key counts in its own Namespace alone';
  expect(events).toMatchObject([
    {
      type: 'AuthorizationDenied',
      metadata: {
        ...(denied !== undefined && { actor: { principalId: denied } }),
        audit: { kind: 'authorization_denial', outcome: 'denied', action: one.useCase.action[edge], resource, authorization, details: { decisionReason: reason } },
      },
    },
  ]);
};

const byKey = routes.filter(({ access }) => access === undefined).map(({ operationId }) => operationId);

describe.each(edges)('of two failing checks the earlier one answers over %s', (edge) => {
  const operationIds = edge === 'REST' ? [...byKey, ...accounts.map(({ operationId }) => operationId)] : byKey;

  it.each(operationIds)('%s', async (operationId) => {
    const applying = orderOf(operationId).filter((check) => applies(check, operationId, edge));
    expect(applying.length).toBeGreaterThan(1);
    for (const [index, earlier] of applying.entries())
      for (const later of [undefined, ...applying.slice(index + 1)])
        for (const identity of isForPeople(operationId) ? (['nobody'] as const) : (['a foreign key', 'nobody'] as const)) {
          const broken = later === undefined ? [earlier] : [earlier, later];
          if (!broken.includes('identity') && identity === 'nobody' && !isForPeople(operationId)) continue;
          const seen = await fail(edge, operationId, broken, identity);
          try {
            expectAnswer(seen, earlier, edge, operationId, identity);
          } catch (error) {
            throw new Error(`Expected ${earlier} before ${later ?? 'everything else'} for ${identity}`, { cause: error });
          }
        }
  });
});

it.each(edges)('whoever is nobody gets 503 over %s while that cannot be recorded, whatever the body holds', async (edge) => {
  const { answer, events } = await founded.failing('AuthorizationDenied', () => fail(edge, 'updateConfiguration', ['identity', 'safety'], 'a foreign key'));
  expect(answer).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
  expect(events).toEqual([]);
});

describe('over GraphQL an id without its place', () => {
  const document = 'mutation($id: ID!, $values: JSON!) { updateConfiguration(input: { id: $id, values: $values }) { ... on Refusal { __typename code message status details { path code } } } }';
  const update = (credentials: Credentials, name: string) =>
    sendGraphql(founded.origin, { document, variables: { id: fixture.names[name]!, values: { constructor: 1 } }, at: ['updateConfiguration'] }, credentials);

  it.each(['C1', 'XC'])('is looked for after the identity and the safety of what comes with it: %s', async (name) => {
    const [nobody, stranger] = [await update(founded.nobody, name), await update(founded.stranger.key, name)];
    expect(nobody).toMatchObject({ status: 403, code: 'FORBIDDEN' });
    expect(await fixture.audit(nobody)).toMatchObject([{ action: 'openclaw.configurations.update', resource: { kind: 'configuration', id: fixture.names[name] } }]);
    expect(stranger).toMatchObject(invalid({ path: '/values/constructor', code: 'INVALID_VALUE' }));
    expect(await fixture.audit(stranger)).toEqual([]);
  });
});

it.each([
  ['eventHistory', 'HistoryFilter', { stream: '\0' }, '/filter/stream'],
  ['auditEvents', 'AuditFilter', { action: '\0' }, '/filter/action'],
] as const)('text that no store keeps is refused by %s after the identity and before the permission', async (field, type, unsafe, path) => {
  const document = `query($filter: ${type}) { ${field}(filter: $filter) { nodes { type } } }`;
  const look = (credentials: Credentials) => sendGraphql(founded.origin, { document, variables: { filter: { namespaceId: fixture.names['N1'], ...unsafe } }, at: [field] }, credentials);
  const [foreign, stranger] = [await look(founded.foreign.key), await look(founded.stranger.key)];
  expect(foreign).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(await fixture.audit(foreign)).toMatchObject([{ action: 'openclaw.audit.read', details: { decisionReason: 'The key counts in its own Namespace alone' } }]);
  expect(stranger).toMatchObject(invalid({ path, code: 'INVALID_VALUE' }));
  expect(await fixture.audit(stranger)).toEqual([]);
});

it('a key of the service principal of an Agent is good for nothing, whatever was granted to it', async () => {
  const { operator, names, application } = fixture;
  const { id, key, grant } = await operator.principal({ namespaceId: names['N1'] });
  await grant([{ action: 'read', resourceKind: 'agent' }], { namespaceId: names['N1']! });
  const look = () => send('REST', application.origin, asked(names, existing)['getAgent']!.useCase, key);
  expect((await look()).status).toBe(200);
  const owned = { type: 'ServicePrincipalCreated', data: { servicePrincipalId: id, namespaceId: names['N1']!, agentId: newId('agt') } } as const;
  await operator.streams.append(iam, await operator.streams.load(iam, ''), [owned], systemContext(operator.installationId));
  const refused = await look();
  expect(refused).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(await fixture.audit(refused)).toMatchObject([{ kind: 'authorization_denial', details: { decisionReason: 'The identity is the one of an Agent' } }]);
});
