/** The resources the rows of the decision table speak of, by their names there, and principals with the grants of a row. No worker runs: what it would find is told. (iam-auth-audit 8.5) */
import { expect } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import type { AuditRecord, ResourceRef } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { openOperator, permissionOf, type TestOperator, type TestPrincipal } from '../support/principals.ts';
import { auditOf, eventsOf } from '../support/request-events.ts';
import { send, useCases as use, type AgentPlace, type Answer, type UseCase } from '../support/use-cases.ts';

/** Ids by name: N1, N2, NP, NF, ND; C1, C2, CP; G1, G0, GD, GS, GX, GP; R1, R2; and X… for ids that nothing has. */
export type Names = Readonly<Record<string, string>>;

/** The Namespace of each name. */
const home: Names = { C1: 'N1', C2: 'N2', CP: 'NP', G1: 'N1', G0: 'N1', GD: 'N1', GS: 'N1', GX: 'N2', GP: 'NP', R1: 'N1', R2: 'N1', XG: 'N1', XC: 'N1', XR: 'N1' };

export const agentAt = (names: Names, agent: string, namespace = home[agent]!): AgentPlace => ({ namespaceId: names[namespace]!, agentId: names[agent]! });
export const revisionAt = (names: Names, revision: string, agent = 'G1') => ({ ...agentAt(names, agent), revisionId: names[revision]! });
export const configurationAt = (names: Names, configuration: string) => ({ namespaceId: names[home[configuration]!]!, configurationId: names[configuration]! });

/** The reference of `agent:read=G1` (one resource), `agent:create@N1` (a collection), or `namespace:read=N1`. */
const referenceOf = (names: Names, kind: ResourceRef['kind'], separator: string, name: string): ResourceRef => {
  if (kind === 'namespace' && separator === '=') return { kind, id: names[name]!, namespaceId: names[name]! };
  if (separator === '@') return { kind, id: names[name]!, namespaceId: names[name]! };
  return { kind, id: names[name]!, namespaceId: names[home[name]!]! };
};

const split = (grant: string) => {
  const [, permission = '', separator = '', name = ''] = /^(\w+:\w+)(?:([@=])(\w+))?$/.exec(grant)!;
  return { permission: permissionOf(permission), separator, name };
};

/** What a denial says was refused, written as a grant. A permission without a name is one of the Installation. */
export const judged = (names: Names, principalId: string, grant: string): NonNullable<AuditRecord['authorization']> => {
  const { permission, separator, name } = split(grant);
  const resource = name === '' ? { kind: permission.resourceKind, id: names['INSTALLATION']! } : referenceOf(names, permission.resourceKind, separator, name);
  return { principalId, action: permission.action, resource };
};

export interface Actor extends TestPrincipal {
  revoke(grant: string): Promise<void>;
}

export interface Fixture {
  readonly application: TestApplication;
  readonly operator: TestOperator;
  /** Shared by all rows, which therefore change none of these. */
  readonly names: Names;
  /** A principal with these grants: `@N1` in the whole Namespace, `=G1` on that resource, without either in the Installation. */
  actor(names: Names, grants: readonly string[], namespace?: string): Promise<Actor>;
  /** The names with another Agent behind G1, so that it may change. */
  fresh(): Promise<Names>;
  /** Does something as the administrator, and fails when it is refused. */
  admin(useCase: UseCase): Promise<{ readonly id: string }>;
  /** Restricts for the time of a row. */
  restricted(names: Names, grant: string): Promise<() => Promise<void>>;
  /** Leaves settings behind that this build cannot read. */
  makeUnreadable(place: AgentPlace): Promise<void>;
  /** The audit records of a request. */
  audit(answer: Answer): Promise<readonly AuditRecord[]>;
  close(): Promise<void>;
}

export const createFixture = async (options: Parameters<typeof startTestApplication>[0] = {}): Promise<Fixture> => {
  const application = await startTestApplication({ ...options, env: { EXUVIA_ROLES: 'api,projector', ...options.env } });
  const { origin, key, database } = application;
  const operator = await openOperator(application);

  const admin: Fixture['admin'] = async (useCase) => {
    const { code, message, data } = await send('REST', origin, useCase, key);
    if (code !== null) throw new Error(`The administrator was refused: ${code}, ${message}`);
    return (data ?? { id: '' }) as { id: string };
  };
  const namespace = async (name: string, ready = true) => {
    const { id } = await admin(use.createNamespace({ name }));
    if (ready) await operator.tell.namespaceReady(id);
    return id;
  };
  const configuration = async (namespaceId: string) => (await admin(use.createConfiguration(namespaceId, { kind: 'agent', values: {} }))).id;
  const agent = async (namespaceId: string, configurationId: string, name: string) =>
    (await admin(use.createAgent(namespaceId, { name, configurationId, harnessAuth: { method: 'runtime' } }))).id;
  const deployed = async (place: AgentPlace) => (await admin(use.deployAgent(place))).id;

  const [N1, N2, NP, NF, ND] = [await namespace('N1'), await namespace('N2'), await namespace('NP', false), await namespace('NF', false), await namespace('ND')];
  const [C1, C2, CP] = [await configuration(N1), await configuration(N2), await configuration(NP)];
  await operator.tell.namespaceFailed(NF);
  await admin(use.deleteNamespace(ND));
  const [G1, G0, GD, GS, GX, GP] = [await agent(N1, C1, 'G1'), await agent(N1, C1, 'G0'), await agent(N1, C1, 'GD'), await agent(N1, C1, 'GS'), await agent(N2, C2, 'GX'), await agent(NP, CP, 'GP')];
  const [R1, R2] = [await deployed({ namespaceId: N1, agentId: G1 }), await deployed({ namespaceId: N1, agentId: G1 })];
  await admin(use.deleteAgent({ namespaceId: N1, agentId: GD }));
  await deployed({ namespaceId: N1, agentId: GS });
  await admin(use.stopAgent({ namespaceId: N1, agentId: GS }));
  const nothing = { XN: newId('ns'), XG: newId('agt'), XC: newId('cfg'), XR: newId('rev') };
  const names: Names = { N1, N2, NP, NF, ND, C1, C2, CP, G1, G0, GD, GS, GX, GP, R1, R2, ...nothing, INSTALLATION: operator.installationId };

  let made = 0;
  return {
    application,
    operator,
    names,
    admin,
    actor: async (known, grants, within) => {
      const principal = await operator.principal({ namespaceId: within === undefined ? undefined : known[within]! });
      const revocations = new Map<string, () => Promise<void>>();
      for (const grant of grants) {
        const { permission, separator, name } = split(grant);
        const { namespaceId, kind, id } = name === '' ? {} : (referenceOf(known, permission.resourceKind, separator, name) as Partial<ResourceRef>);
        const scope = separator === '=' ? { namespaceId: namespaceId!, resourceKind: kind!, resourceId: id! } : namespaceId === undefined ? {} : { namespaceId };
        revocations.set(grant, await principal.grant([permission], scope));
      }
      return { ...principal, revoke: async (grant) => revocations.get(grant)!() };
    },
    fresh: async () => ({ ...names, G1: await agent(N1, C1, `fresh ${++made}`) }),
    restricted: async (known, grant) => {
      const { permission, separator, name } = split(grant);
      const { namespaceId, id } = referenceOf(known, permission.resourceKind, separator, name);
      const restrictionId = await operator.restrict(permission, { namespaceId: namespaceId!, ...(separator === '=' && { resourceId: id }) });
      return () => operator.unrestrict(restrictionId);
    },
    makeUnreadable: async ({ namespaceId, agentId }) => {
      const loaded = await operator.streams.load(agents, agentId);
      const settings = { harnessAuth: { method: 'of a later build' } } as never;
      await operator.streams.append(agents, loaded, [{ type: 'AgentHarnessAuthBound', data: { agentId, namespaceId, settings } }], systemContext(operator.installationId));
    },
    audit: async ({ requestId }) => auditOf(await eventsOf(database, requestId)),
    close: async () => {
      await operator.close();
      await application.close();
    },
  };
};

/** Expects that a request was refused with the one generic answer, and left exactly one denial of exactly this permission behind. */
export const expectDenied = async ({ application }: Fixture, answer: Answer, action: string, authorization: NonNullable<AuditRecord['authorization']>): Promise<void> => {
  const { status, code, message, details } = answer;
  expect({ status, code, message, details }).toEqual({ status: 403, code: 'FORBIDDEN', message: 'You do not have permission for this operation', details: [] });
  const events = await eventsOf(application.database, answer.requestId);
  expect(events.map(({ type }) => type)).toEqual(['AuthorizationDenied']);
  const [{ metadata }] = events as [(typeof events)[0]];
  expect(metadata.actor).toMatchObject({ kind: 'service_principal', principalId: authorization.principalId });
  expect(metadata.audit).toMatchObject({ kind: 'authorization_denial', outcome: 'denied', reasonCode: 'AUTHORIZATION_DENIED', action, authorization });
};
