/** The authorization decision table as data: who asks for what, and what comes of it. Names and grants are written as in the fixture. (iam-auth-audit 8.6) */
import { agents } from '../../src/aggregates.ts';
import type { PresentAgent } from '../../src/agent/agent.ts';
import type { Code } from '../../src/kernel/errors.ts';
import type { AuditRecord } from '../../src/kernel/event.ts';
import { send, useCases as use, type Answer, type EdgeName, type UseCase } from '../support/use-cases.ts';
import { consoleOrigin } from '../support/sign-in.ts';
import { agentAt, configurationAt, revisionAt, type Actor, type Fixture, type Names, type Person } from './fixture.ts';

/** A row while it runs on one edge. */
export interface Scene {
  readonly fixture: Fixture;
  readonly edge: EdgeName;
  readonly names: Names;
  readonly actor: Actor;
  /** Undone at the end of the row. */
  defer(undo: () => Promise<unknown>): void;
}

export interface Row {
  readonly id: string;
  /** Grants of U; the administrator; or nobody. */
  readonly by: readonly string[] | 'the administrator' | 'nobody';
  /** U is a person with a session on a trusted page. */
  readonly person?: true;
  /** U belongs to this Namespace. */
  readonly within?: string;
  /** Another Agent stands behind G1, so that the row may change it. */
  readonly fresh?: true;
  /** What happened before; may put other ids behind names. */
  readonly given?: (scene: Scene) => Promise<Names | void>;
  readonly asks: (names: Names, scene: Scene) => UseCase;
  /** Sent instead of a key: what a browser would. */
  readonly credentials?: (scene: Scene) => Promise<Readonly<Record<string, string>>>;
  /** Whom the denial names, where it is not the actor. */
  readonly deniedActor?: string;
  /** Sent along with the key. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly only?: EdgeName;
  readonly status: number;
  readonly code?: Code;
  /** The permission that was refused, for a denial in the usual words. */
  readonly denied?: string;
  /** The name of what one audited success is about; `new` for what the answer carries. */
  readonly changes?: string;
  /** What the audit calls that success, where it is not the operation asked for. */
  readonly recordedAs?: string;
  /** The type of the one event that a refusal in other words, or a failure that is audited, leaves behind. */
  readonly records?: 'AuthorizationDenied' | 'CommandFailed';
  readonly then?: (seen: { readonly data: never; readonly answer: Answer; readonly records: readonly AuditRecord[]; readonly scene: Scene }) => Promise<void> | void;
}

const draft = (names: Names, more: object = {}) => ({ name: `row ${++drafts}`, configurationId: names['C1']!, harnessAuth: { method: 'runtime' }, ...more });
let drafts = 0;

const ask = async ({ edge, fixture }: Scene, useCase: UseCase, actor: Actor): Promise<Answer> => {
  const answer = await send(edge, fixture.application.origin, useCase, actor.key);
  if (answer.code !== null) throw new Error(`What the row begins with was refused: ${answer.code}, ${answer.message}`);
  return answer;
};
const asked = (useCase: (names: Names) => UseCase) => async (scene: Scene) => {
  await ask(scene, useCase(scene.names), scene.actor);
};
const restricted = (grant: string) => async ({ fixture, names, defer }: Scene) => defer(await fixture.restricted(names, grant));

const stateOf = async ({ fixture, names }: Scene): Promise<PresentAgent> => (await fixture.operator.streams.load(agents, names['G1']!)).state as PresentAgent;

/** Another principal began the deletion of G1, which then failed for good. */
const failedDeletion = async (scene: Scene, by: Actor): Promise<void> => {
  await ask(scene, deleteG1(scene.names), by);
  await scene.fixture.operator.tell.teardownFailed(scene.names['G1']!);
};
const another = (scene: Scene) => scene.fixture.actor(scene.names, ['agent:delete=G1']);

const getG1 = (names: Names) => use.getAgent(agentAt(names, 'G1'));
const stopG1 = (names: Names) => use.stopAgent(agentAt(names, 'G1'));
const deleteG1 = (names: Names) => use.deleteAgent(agentAt(names, 'G1'));
const deployG1 = (names: Names) => use.deployAgent(agentAt(names, 'G1'));
const patchG1 = (more: object = {}) => (names: Names) => use.updateAgent(agentAt(names, 'G1'), { configurationId: names['C1']!, ...more });
const create = (more: object = {}, namespace = 'N1') => (names: Names) => use.createAgent(names[namespace]!, draft(names, more));

const creator = ['agent:create@N1', 'configuration:read=C1'];
const patcher = ['agent:update=G1', 'configuration:read=C1'];
const deployer = ['agent:deploy=G1', 'configuration:read=C1'];
const everyAction = ['create', 'read', 'update', 'delete', 'deploy', 'operate', 'administer'].map((action) => `agent:${action}@N1`);

const ids = (data: unknown): readonly string[] => (data as { id: string }[]).map(({ id }) => id);
const shows = (...expected: readonly string[]): NonNullable<Row['then']> => ({ data, scene: { names } }) => {
  if (JSON.stringify(ids(data)) !== JSON.stringify(expected.map((name) => names[name]))) throw new Error(`The list shows ${JSON.stringify(data)}`);
};
const has = (member: string, value: unknown): NonNullable<Row['then']> => ({ data }) => {
  if ((data as Record<string, unknown>)[member] !== value) throw new Error(`Expected ${member} ${String(value)}, found ${JSON.stringify(data)}`);
};
const holds = (what: string, isSo: (agent: PresentAgent, scene: Scene) => boolean): NonNullable<Row['then']> => async ({ scene }) => {
  if (!isSo(await stateOf(scene), scene)) throw new Error(`Expected an Agent with ${what}`);
};
const unfailed = holds('its deletion queued again for the same caller', ({ deletion }, { actor }) => deletion?.failedCode === null && deletion.actor.principalId === actor.id);
const stillFailed = holds('its deletion failed as before', ({ deletion }) => deletion?.failedCode === 'MAX_ATTEMPTS_EXHAUSTED');

const forbidden = (denied: string) => ({ status: 403, code: 'FORBIDDEN', denied }) as const;
const invalid = { status: 400, code: 'INVALID_REQUEST' } as const;
const notFound = { status: 404, code: 'NOT_FOUND' } as const;
const conflict = { status: 409, code: 'RESOURCE_CONFLICT' } as const;

const administrators = async ({ fixture, names }: Scene): Promise<Person> => fixture.person(names, 'the administrator');
/** A page of the administrator, which sends these headers beside the cookie of its session. */
const page = (headers: Readonly<Record<string, string>>): NonNullable<Row['credentials']> => async (scene) => ({ cookie: (await administrators(scene)).cookie, ...headers });
const pageOf = ({ cookie }: Person) => ({ cookie, origin: consoleOrigin });
const sql = ({ fixture }: Scene, text: string, ...values: readonly unknown[]) => fixture.application.database.pool.query(text, [...values]);
const unauthenticated = { status: 401, code: 'UNAUTHENTICATED' } as const;
const untrusted = { status: 403, code: 'FORBIDDEN' } as const;

const sessions: readonly Row[] = [
  {
    id: 'AZ-002',
    by: 'the administrator',
    credentials: async (scene) => {
      const person = await scene.fixture.person(scene.names, ['agent:read=G1']);
      await sql(scene, 'update session set expires_at = clock_timestamp() where session_key = $1', person.sessionKey);
      return pageOf(person);
    },
    asks: getG1,
    ...unauthenticated,
  },
  {
    id: 'AZ-003',
    by: 'the administrator',
    credentials: async ({ fixture, names }) => {
      const person = await fixture.person(names, ['agent:read=G1']);
      const signedOut = await fetch(`${fixture.application.origin}/api/auth/sign-out`, { method: 'POST', headers: pageOf(person) });
      if (signedOut.status !== 200) throw new Error(`Signing out answered ${signedOut.status}`);
      return pageOf(person);
    },
    asks: getG1,
    ...unauthenticated,
  },
  { id: 'AZ-004', by: 'the administrator', credentials: page({ authorization: 'Bearer any' }), asks: getG1, ...unauthenticated },
  { id: 'AZ-005', by: 'the administrator', credentials: page({ 'x-api-key': 'exk.no.key' }), asks: getG1, ...unauthenticated },
  { id: 'AZ-006', by: 'the administrator', credentials: page({ 'x-api-key': '' }), asks: getG1, ...unauthenticated },
  {
    id: 'AZ-008',
    by: 'the administrator',
    fresh: true,
    given: async (scene) => {
      const { cookie } = await administrators(scene);
      const refused = await send(scene.edge, scene.fixture.application.origin, stopG1(scene.names), { cookie });
      if (refused.status !== 403) throw new Error(`Without an Origin the stop answered ${refused.status}`);
      const session = await fetch(`${scene.fixture.application.origin}/api/auth/session`, { headers: { cookie } });
      if (((await session.json()) as { data: unknown }).data === null) throw new Error('Expected the session to be alive still');
    },
    credentials: page({}),
    asks: stopG1,
    ...untrusted,
  },
  { id: 'AZ-009', by: 'nobody', credentials: async () => ({ cookie: 'openclaw_occ.session_token=junk' }), asks: stopG1, ...untrusted },
  { id: 'AZ-010', by: 'the administrator', credentials: page({ origin: consoleOrigin, 'sec-fetch-site': 'same-site' }), asks: stopG1, ...untrusted },
  {
    id: 'AZ-016',
    by: 'the administrator',
    credentials: async ({ fixture }) => pageOf(await fixture.operator.person({ known: false })),
    asks: getG1,
    ...forbidden('agent:read=G1'),
    deniedActor: 'unresolved',
  },
  { id: 'AZ-065', by: 'the administrator', credentials: async ({ fixture, names }) => pageOf(await fixture.person(names, ['agent:read=G1'])), asks: getG1, status: 200 },
];

const admission: readonly Row[] = [
  { id: 'AZ-001', by: 'nobody', asks: getG1, status: 401, code: 'UNAUTHENTICATED' },
  { id: 'AZ-007', by: [], asks: getG1, headers: { cookie: 'openclaw_occ.session_token=any' }, ...forbidden('agent:read=G1') },
  { id: 'AZ-011', by: ['agent:operate=G1'], fresh: true, asks: stopG1, status: 202, changes: 'G1' },
  { id: 'AZ-012', by: 'nobody', asks: (n) => use.getAgent({ namespaceId: n['N1']!, agentId: 'agt_1' }), only: 'REST', ...invalid },
  { id: 'AZ-013', by: [], asks: create({ configurationId: 'cfg_1' }), ...invalid },
  { id: 'AZ-014', by: 'nobody', asks: create({ configurationId: 'cfg_1' }), status: 401, code: 'UNAUTHENTICATED' },
  { id: 'AZ-015', by: 'the administrator', asks: (n) => ({ ...deployG1(n), rest: { ...deployG1(n).rest, body: {} } }), only: 'REST', ...invalid },
  { id: 'AZ-017', by: everyAction, within: 'N1', asks: (n) => use.getAgent(agentAt(n, 'GX')), ...forbidden('agent:read=GX') },
  { id: 'AZ-018', by: ['namespace:read@N1'], within: 'N1', asks: () => use.listNamespaces(), ...forbidden('namespace:read') },
  { id: 'AZ-018', by: ['namespace:read@N1'], within: 'N1', asks: () => use.getInstallation(), ...forbidden('installation:read') },
  {
    id: 'AZ-021',
    by: ['agent:read=G1'],
    given: async (scene) => (await ask(scene, getG1(scene.names), scene.actor), scene.actor.revoke('agent:read=G1')),
    asks: getG1,
    ...forbidden('agent:read=G1'),
  },
];

const creation: readonly Row[] = [
  { id: 'AZ-030', by: creator, asks: create(), status: 201, changes: 'new' },
  { id: 'AZ-031', by: ['agent:create@NP', 'configuration:read=CP'], asks: (n) => create({ configurationId: n['CP'] }, 'NP')(n), status: 201, changes: 'new' },
  { id: 'AZ-032', by: ['configuration:read=C1'], asks: create(), ...forbidden('agent:create@N1') },
  { id: 'AZ-033', by: ['agent:create@N1'], asks: create(), ...forbidden('configuration:read=C1') },
  { id: 'AZ-034', by: ['agent:create=G1', 'configuration:read=C1'], asks: create(), ...forbidden('agent:create@N1') },
  { id: 'AZ-035', by: ['agent:create@N1', 'configuration:read@N1'], asks: (n) => create({ configurationId: n['XC'] })(n), ...notFound },
  { id: 'AZ-036', by: 'the administrator', asks: (n) => create({ configurationId: n['C2'] })(n), ...notFound },
  { id: 'AZ-037', by: [], asks: create({}, 'XN'), ...forbidden('agent:create@XN') },
  { id: 'AZ-038', by: 'the administrator', asks: create({}, 'XN'), ...notFound },
  { id: 'AZ-039', by: 'the administrator', asks: create({}, 'NF'), ...conflict },
  { id: 'AZ-040', by: 'the administrator', asks: create({}, 'ND'), ...conflict },
  { id: 'AZ-041', by: creator, asks: create({ name: 'G1' }), ...conflict },
  { id: 'AZ-042', by: ['agent:create@N1'], asks: create({ name: 'G1' }), ...forbidden('configuration:read=C1') },
  { id: 'AZ-048', by: creator, asks: create({ harnessAuth: { method: 'runtime' } }), status: 201, changes: 'new' },
  { id: 'AZ-049', by: 'the administrator', asks: create({ servicePrincipalId: 'spn_1' }), ...invalid },
  { id: 'AZ-050', by: 'the administrator', asks: create({ backendId: '' }), ...invalid },
  { id: 'AZ-050', by: 'the administrator', asks: create({ backendId: ' a' }), ...invalid },
  { id: 'AZ-050', by: 'the administrator', asks: create({ backendId: 'unknown' }), ...notFound },
  { id: 'AZ-051', by: 'the administrator', given: restricted('agent:create@N1'), asks: create(), ...forbidden('agent:create@N1') },
  {
    id: 'AZ-052',
    by: creator,
    given: async (scene) => ({ ...scene.names, G1: ((await ask(scene, create()(scene.names), scene.actor)).data as { id: string }).id }),
    asks: getG1,
    ...forbidden('agent:read=G1'),
  },
  { id: 'AZ-053', by: [], asks: create({ workspaceDefaultsId: 'a'.repeat(64) }), ...conflict },
  { id: 'AZ-054', by: 'the administrator', asks: create({ initialWorkspaceFiles: { 'TOOLS.md': '' } }), ...invalid },
  { id: 'AZ-054', by: 'the administrator', asks: create({ initialWorkspaceFiles: { 'SOUL.md': '\u0000' } }), ...invalid },
  { id: 'AZ-054', by: 'the administrator', asks: create({ initialWorkspaceFiles: { 'SOUL.md': 'é'.repeat(8_193) } }), ...invalid },
];

const reads: readonly Row[] = [
  { id: 'AZ-060', by: ['namespace:read=N1', 'agent:read=G1'], asks: (n) => use.listAgents(n['N1']!), status: 200, then: shows('G1') },
  { id: 'AZ-061', by: ['namespace:read=N1'], asks: (n) => use.listAgents(n['N1']!), status: 200, then: shows() },
  { id: 'AZ-062', by: ['agent:read=G1'], asks: (n) => use.listAgents(n['N1']!), ...forbidden('namespace:read=N1') },
  {
    id: 'AZ-063',
    by: 'the administrator',
    given: restricted('agent:read=G1'),
    asks: (n) => use.listAgents(n['N1']!),
    status: 200,
    then: ({ data, scene: { names } }) => {
      if (ids(data).includes(names['G1']!) || !ids(data).includes(names['G0']!)) throw new Error('Expected all Agents but G1');
    },
  },
  { id: 'AZ-064', by: 'the administrator', given: restricted('agent:read=G1'), asks: getG1, ...forbidden('agent:read=G1') },
  { id: 'AZ-065', by: ['agent:read=G1'], asks: getG1, status: 200 },
  { id: 'AZ-066', by: ['agent:update=G1', 'agent:administer=G1'], asks: getG1, ...forbidden('agent:read=G1') },
  { id: 'AZ-067', by: ['agent:read=G1'], asks: (n) => use.getAgent(agentAt(n, 'G1', 'N2')), ...forbidden('agent:read=G1 in N2') },
  { id: 'AZ-068', by: 'the administrator', asks: (n) => use.getAgent(agentAt(n, 'G1', 'N2')), ...notFound },
  { id: 'AZ-069', by: ['agent:read=G1'], asks: (n) => use.getAgent(agentAt(n, 'XG')), ...forbidden('agent:read=XG') },
  { id: 'AZ-070', by: ['agent:read@N1'], asks: (n) => use.getAgent(agentAt(n, 'XG')), ...notFound },
  { id: 'AZ-071', by: ['agent:read=GD'], asks: (n) => use.getAgent(agentAt(n, 'GD')), status: 200, then: has('status', 'deleting') },
  {
    id: 'AZ-072',
    by: ['agent:read=G1'],
    fresh: true,
    given: ({ fixture, names }) => fixture.makeUnreadable(agentAt(names, 'G1')),
    asks: getG1,
    status: 200,
    then: ({ data }) => {
      const { configurationReadError: error } = data as { configurationReadError?: { code: string; field: string } };
      if (error?.code !== 'SAVED_CONFIGURATION_UNREADABLE' || error.field !== 'harnessAuth') throw new Error(`Expected a read error, found ${JSON.stringify(data)}`);
    },
  },
  { id: 'AZ-073', by: [], fresh: true, given: ({ fixture, names }) => fixture.makeUnreadable(agentAt(names, 'G1')), asks: getG1, ...forbidden('agent:read=G1') },
];

const patching: readonly Row[] = [
  { id: 'AZ-080', by: patcher, fresh: true, asks: patchG1(), status: 200, changes: 'G1' },
  { id: 'AZ-088', by: patcher, fresh: true, asks: patchG1({ configurationId: undefined }), ...invalid },
  { id: 'AZ-089', by: ['agent:update=G1'], fresh: true, asks: patchG1(), ...forbidden('configuration:read=C1') },
  { id: 'AZ-090', by: [...patcher, 'configuration:read@N1'], fresh: true, asks: (n) => patchG1({ configurationId: n['XC'] })(n), ...notFound },
  { id: 'AZ-091', by: ['agent:update=GD', 'configuration:read=C1'], asks: (n) => use.updateAgent(agentAt(n, 'GD'), { configurationId: n['C1'] }), status: 409, code: 'AGENT_DELETING' },
  { id: 'AZ-092', by: ['configuration:read=C1'], asks: (n) => use.updateAgent(agentAt(n, 'GD'), { configurationId: n['C1'] }), ...forbidden('agent:update=GD') },
  { id: 'AZ-093', by: patcher, fresh: true, asks: patchG1({ plugins: {} }), status: 200, changes: 'G1' },
  { id: 'AZ-093', by: patcher, fresh: true, asks: patchG1({ plugins: { search: { enabled: true } } }), status: 200, changes: 'G1' },
  { id: 'AZ-094', by: patcher, fresh: true, asks: patchG1(), status: 200, changes: 'G1', then: has('status', 'active') },
  { id: 'AZ-095', by: 'the administrator', asks: (n) => patchG1({ harnessAuth: { method: 'api_key', source: { kind: 'secret', namespaceId: n['N2'], id: 'sec_1' } } })(n), ...invalid },
];

const deploying: readonly Row[] = [
  { id: 'AZ-100', by: deployer, fresh: true, asks: deployG1, status: 202, changes: 'new' },
  { id: 'AZ-101', by: ['agent:operate=G1', 'agent:update=G1', 'agent:administer=G1', 'configuration:read=C1'], asks: deployG1, ...forbidden('agent:deploy=G1') },
  { id: 'AZ-102', by: ['agent:deploy=G1'], asks: deployG1, ...forbidden('configuration:read=C1') },
  { id: 'AZ-108', by: deployer, fresh: true, given: async ({ fixture, names }) => void (await fixture.admin(patchG1({ harnessAuth: null })(names))), asks: deployG1, ...conflict },
  {
    id: 'AZ-114',
    by: 'the administrator',
    asks: (n) => use.deployAgent(agentAt(n, 'GP')),
    status: 409,
    code: 'NAMESPACE_NOT_READY',
    records: 'CommandFailed',
    then: ({ records }) => {
      const [record] = records;
      if (records.length !== 1 || record?.kind !== 'mutation' || record.outcome !== 'failure' || record.reasonCode !== 'NAMESPACE_NOT_READY') throw new Error(`Expected an audited failure, found ${JSON.stringify(records)}`);
    },
  },
  { id: 'AZ-115', by: 'the administrator', asks: (n) => use.deployAgent(agentAt(n, 'GD')), status: 409, code: 'AGENT_DELETING' },
  { id: 'AZ-117', by: 'the administrator', given: restricted('agent:deploy@N1'), asks: deployG1, ...forbidden('agent:deploy=G1') },
  {
    id: 'AZ-121',
    by: deployer,
    fresh: true,
    given: async (scene) => ({ ...scene.names, R1: ((await ask(scene, deployG1(scene.names), scene.actor)).data as { id: string }).id }),
    asks: (n) => use.getAgentDeployment(revisionAt(n, 'R1')),
    ...forbidden('agent_revision:read=R1'),
  },
];

const stopping: readonly Row[] = [
  { id: 'AZ-130', by: ['agent:operate=G1'], fresh: true, asks: stopG1, status: 202, changes: 'G1' },
  { id: 'AZ-130', by: ['agent:operate=G1'], fresh: true, given: asked(stopG1), asks: stopG1, status: 202, changes: 'G1' },
  { id: 'AZ-131', by: ['agent:deploy=G1', 'agent:delete=G1'], asks: stopG1, ...forbidden('agent:operate=G1') },
  { id: 'AZ-132', by: ['agent:operate=GD'], asks: (n) => use.stopAgent(agentAt(n, 'GD')), status: 202, then: has('status', 'deleting') },
  {
    id: 'AZ-133',
    by: ['agent:delete=G1'],
    fresh: true,
    given: restricted('agent:read=G1'),
    asks: deleteG1,
    status: 202,
    changes: 'G1',
    then: ({ data, records }) => {
      const { status, desiredRuntimeState } = data as { status: string; desiredRuntimeState: string };
      const { accessBindingsRemovedOnCompletion: bindings, restrictionsRemovedOnCompletion: restrictions } = records[0]!.details as Record<string, readonly string[]>;
      if (status !== 'deleting' || desiredRuntimeState !== 'stopped' || bindings?.length !== 1 || restrictions?.length !== 1) throw new Error(`Expected what the deletion removes, found ${JSON.stringify({ data, records })}`);
    },
  },
  { id: 'AZ-134', by: ['agent:update=G1', 'agent:operate=G1', 'agent:administer=G1'], asks: deleteG1, ...forbidden('agent:delete=G1') },
  { id: 'AZ-135', by: ['agent:delete=G1'], fresh: true, given: asked(deleteG1), asks: deleteG1, status: 202, changes: 'G1', then: unfailed },
  {
    id: 'AZ-136',
    by: ['agent:delete=G1'],
    fresh: true,
    given: async (scene) => void (await ask(scene, deleteG1(scene.names), await another(scene))),
    asks: deleteG1,
    status: 202,
    changes: 'G1',
    then: holds('the deletion of its first caller', ({ deletion }, { actor }) => deletion !== null && deletion.actor.principalId !== actor.id),
  },
  { id: 'AZ-137', by: ['agent:delete=G1'], fresh: true, given: (scene) => failedDeletion(scene, scene.actor), asks: deleteG1, status: 202, changes: 'G1', then: unfailed },
  {
    id: 'AZ-138',
    by: ['agent:delete=G1'],
    fresh: true,
    given: async (scene) => failedDeletion(scene, await another(scene)),
    asks: deleteG1,
    status: 403,
    code: 'FORBIDDEN',
    records: 'AuthorizationDenied',
    then: async (seen) => {
      const [record] = seen.records;
      const { deletion } = await stateOf(seen.scene);
      if (record?.kind !== 'authorization_denial' || record.details?.['initiatingActorId'] !== deletion?.actor.principalId) throw new Error(`Expected a denial that names who began, found ${JSON.stringify(seen.records)}`);
      await stillFailed(seen);
    },
  },
  {
    id: 'AZ-139',
    by: ['agent:delete=G1'],
    fresh: true,
    given: async (scene) => {
      const first = await another(scene);
      await failedDeletion(scene, first);
      await first.revoke('agent:delete=G1');
    },
    asks: deleteG1,
    status: 202,
    changes: 'G1',
    recordedAs: 'takeover',
    then: unfailed,
  },
  {
    id: 'AZ-140',
    by: ['agent:delete=G1'],
    fresh: true,
    given: async (scene) => (await failedDeletion(scene, scene.actor), scene.actor.revoke('agent:delete=G1')),
    asks: deleteG1,
    ...forbidden('agent:delete=G1'),
    then: stillFailed,
  },
  { id: 'AZ-141', by: [], fresh: true, given: async (scene) => failedDeletion(scene, await another(scene)), asks: deleteG1, ...forbidden('agent:delete=G1'), then: stillFailed },
];

const diagnoseR1 = (n: Names) => use.diagnoseAgentDeployment(revisionAt(n, 'R1'));

const revisions: readonly Row[] = [
  { id: 'AZ-150', by: ['agent:read=G1', 'agent_revision:read=R1'], asks: (n) => use.listAgentRevisions(agentAt(n, 'G1')), status: 200, then: shows('R1') },
  { id: 'AZ-151', by: ['agent:read=G1'], asks: (n) => use.listAgentRevisions(agentAt(n, 'G1')), status: 200, then: shows() },
  { id: 'AZ-152', by: ['agent_revision:read=R1'], asks: (n) => use.listAgentRevisions(agentAt(n, 'G1')), ...forbidden('agent:read=G1') },
  { id: 'AZ-153', by: ['agent_revision:read=R1'], asks: (n) => use.getAgentRevision(revisionAt(n, 'R1')), status: 200 },
  { id: 'AZ-154', by: ['agent_revision:read=G1'], asks: (n) => use.getAgentRevision(revisionAt(n, 'R1')), ...forbidden('agent_revision:read=R1') },
  { id: 'AZ-155', by: 'the administrator', asks: (n) => use.getAgentRevision(revisionAt(n, 'R1', 'G0')), ...notFound },
  { id: 'AZ-156', by: ['agent_revision:read=R1'], asks: (n) => use.getAgentDeployment(revisionAt(n, 'R1')), status: 200 },
  ...['agent:read=G1', 'agent:operate=G1', 'agent_revision:read=R1'].map((missing, _, all): Row => ({ id: 'AZ-159', by: all.filter((grant) => grant !== missing), asks: diagnoseR1, ...forbidden(missing) })),
  { id: 'AZ-160', by: ['agent:read=G1', 'agent:operate=G1', 'agent_revision:read=R1'], asks: diagnoseR1, status: 503, code: 'DEPENDENCY_UNAVAILABLE' },
  { id: 'AZ-157', by: ['agent:operate=G1', 'agent:read=G1'], asks: (n) => use.getAgentDeployment(revisionAt(n, 'R1')), ...forbidden('agent_revision:read=R1') },
];

const readers = { name: 'Readers', permissions: [{ action: 'read', resourceKind: 'agent' }] };
const createRole = (input: object = readers) => (names: Names) => use.createRole(names['N1']!, input);
const permitting = (...permissions: readonly string[]) => ({ permissions: permissions.map((text) => text.split(':')).map(([resourceKind, action]) => ({ action, resourceKind })) });

/** What a row binds: ROLE stands for reading Agents, and P1 for who gets it, on G1. */
const bind = (more: Readonly<Record<string, string>> = {}) => (names: Names) => {
  const { subject = 'P1', role = 'ROLE', kind = 'agent', resource = 'G1' } = more;
  return use.createAccessBinding(names['N1']!, { subjectId: names[subject]!, roleId: names[role]!, resourceKind: kind, resourceId: names[resource]! });
};
const withRole = (...permissions: readonly string[]) => async ({ fixture, names }: Scene) => ({ ...names, ROLE: (await fixture.admin(createRole(permitting(...permissions))(names))).id });
const reading = withRole('agent:read', 'agent_revision:read');
const refusedAt = (path: string): NonNullable<Row['then']> => ({ answer: { details } }) => {
  if (JSON.stringify(details) !== JSON.stringify([{ path, code: 'INVALID_VALUE' }])) throw new Error(`Expected a detail at ${path}, found ${JSON.stringify(details)}`);
};
const bound = async (scene: Scene): Promise<Names> => {
  const names = await reading(scene);
  return { ...names, BINDING: (await scene.fixture.admin(bind()(names))).id };
};
const issueFor = (principal: string) => (names: Names) => use.issueServiceKey({ servicePrincipalId: names[principal]!, name: 'row' });

const policy: readonly Row[] = [
  { id: 'AZ-147', by: 'the administrator', given: reading, asks: bind({ resource: 'GD' }), ...invalid, then: refusedAt('/resourceId') },
  { id: 'AZ-147', by: 'the administrator', given: reading, asks: bind({ subject: 'PD' }), ...invalid, then: refusedAt('/subjectId') },
  { id: 'AZ-191', by: ['installation:administer'], asks: (n) => use.listRoles(n['N1']!), ...forbidden('namespace:read=N1') },
  { id: 'AZ-192', by: ['namespace:read=N1', ...everyAction], given: reading, asks: bind(), ...forbidden('installation:administer') },
  { id: 'AZ-194', by: 'the administrator', asks: createRole(permitting('secret:read_logs')), ...invalid, then: refusedAt('/permissions/0/action') },
  { id: 'AZ-194', by: 'the administrator', asks: createRole(permitting('agent:read', 'configuration:deploy')), ...invalid, then: refusedAt('/permissions/1/action') },
  { id: 'AZ-194', by: 'the administrator', asks: createRole(permitting('namespace:create')), ...invalid, then: refusedAt('/permissions/0/action') },
  { id: 'AZ-195', by: 'the administrator', given: withRole('agent:read', 'agent:create'), asks: bind(), ...invalid, then: refusedAt('/roleId') },
  { id: 'AZ-195', by: 'the administrator', given: withRole('configuration:read'), asks: bind(), ...invalid, then: refusedAt('/roleId') },
  { id: 'AZ-196', by: 'the administrator', given: reading, asks: bind({ subject: 'PX' }), ...invalid, then: refusedAt('/subjectId') },
  { id: 'AZ-197', by: 'the administrator', given: async (scene) => ({ ...(await reading(scene)), A1: 'sa_00000000-0000-4000-8000-000000000000' }), asks: bind({ subject: 'A1' }), ...invalid, then: refusedAt('/subjectId') },
  { id: 'AZ-198', by: 'the administrator', asks: (n) => use.deleteRole(n['N1']!, n['ROLE']!), ...conflict },
  { id: 'AZ-199', by: 'the administrator', given: bound, asks: (n) => use.deleteAccessBinding(n['N1']!, n['BINDING']!), status: 204, changes: 'G1' },
  {
    id: 'AZ-199',
    by: 'the administrator',
    given: async (scene) => {
      const names = await bound(scene);
      await scene.fixture.admin(use.deleteAccessBinding(names['N1']!, names['BINDING']!));
      return names;
    },
    asks: (n) => use.deleteAccessBinding(n['N1']!, n['BINDING']!),
    ...notFound,
  },
  { id: 'AZ-200', by: 'the administrator', asks: issueFor('P1'), ...invalid, then: refusedAt('/servicePrincipalId') },
  {
    id: 'AZ-201',
    by: ['installation:administer'],
    asks: issueFor('ADMINISTRATOR'),
    status: 403,
    code: 'FORBIDDEN',
    records: 'AuthorizationDenied',
    then: ({ records: found, scene }) => {
      const [record] = found;
      const { action, authorization, reasonCode } = record ?? {};
      if (found.length !== 1 || action !== 'openclaw.auth.service-keys.create' || reasonCode !== 'SERVICE_PRINCIPAL_GRANTS_NOT_COVERED' || authorization?.principalId !== scene.actor.id) throw new Error(`Expected a denial for want of coverage, found ${JSON.stringify(found)}`);
    },
  },
  {
    id: 'AZ-203',
    by: 'the administrator',
    given: ({ fixture, actor, defer }) => fixture.bindUnknownRole(actor.id).then(defer),
    asks: (n) => use.getConfiguration(configurationAt(n, 'C1')),
    ...forbidden('configuration:read=C1'),
  },
];

/** Over GraphQL the Agent is read first. */
const askNativeAdmin = (names: Names): UseCase => ({ ...use.getAgentNativeAdmin(agentAt(names, 'G1')), action: { REST: 'openclaw.agents.native_admin.read', GraphQL: 'openclaw.agents.native_admin.read' } });
const nativeAdminDenied = { asks: askNativeAdmin, ...forbidden('agent:administer=G1') } as const;

const nativeAdmin: readonly Row[] = [
  { id: 'AZ-181', by: ['agent:read=G1', 'agent:operate=G1'], person: true, ...nativeAdminDenied },
  { id: 'AZ-182', by: [], person: true, only: 'REST', ...nativeAdminDenied },
  { id: 'AZ-182', by: ['agent:read=G1'], person: true, only: 'GraphQL', ...nativeAdminDenied },
  { id: 'AZ-183', by: ['agent:administer=G1'], only: 'REST', ...nativeAdminDenied },
  { id: 'AZ-183', by: ['agent:read=G1', 'agent:administer=G1'], only: 'GraphQL', ...nativeAdminDenied },
];

export const rows: readonly Row[] = [...admission, ...sessions, ...creation, ...reads, ...patching, ...deploying, ...stopping, ...revisions, ...nativeAdmin, ...policy];

/** Rows whose outcome the worker decides: dispatch.test.ts. */
export const dispatchRows = ['AZ-118', 'AZ-142', 'AZ-143', 'AZ-144', 'AZ-145', 'AZ-146'] as const;

/** Rows that take a process which runs Agents: diagnostics.test.ts. */
export const diagnosticsRows = ['AZ-158', 'AZ-160'] as const;

/** Rows of an Installation with the native admin UI: ../native-admin. */
export const nativeAdminRows = ['AZ-180', 'AZ-184'] as const;

/** Rows of stores that do not answer: outage.test.ts. */
export const outageRows = ['AZ-019', 'AZ-020'] as const;

/** Rows of an append that fails in the middle of a command: ../iam/service-keys.test.ts. */
export const failedAppendRows = ['AZ-202'] as const;

const through = (first: number, last: number): readonly string[] => Array.from({ length: last - first + 1 }, (_, index) => `AZ-${String(first + index).padStart(3, '0')}`);

/** The whole table. */
export const allRows: readonly string[] = [[1, 21], [30, 54], [60, 73], [80, 95], [100, 121], [130, 147], [150, 160], [170, 184], [190, 203]].flatMap(([first, last]) => through(first!, last!));

/** Rows that wait for what is not built yet, by what they wait for. */
export const waiting: Readonly<Record<string, readonly string[]>> = {
  'Secrets, service accounts and credential sources': ['AZ-043', 'AZ-044', 'AZ-045', 'AZ-046', 'AZ-047', ...through(81, 87), ...through(103, 107), ...through(109, 113), 'AZ-116', 'AZ-119', 'AZ-120', 'AZ-190', 'AZ-193'],
  'workspace files': through(170, 179),
};
