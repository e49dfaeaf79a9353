/** The resources the rows of the decision table speak of, by their names there, and principals with the grants of a row. No worker runs: what it would find is told. (iam-auth-audit 8.5) */
import { expect } from 'vitest';
import { agents, iam } from '../../src/aggregates.ts';
import type { AuditRecord, ResourceRef } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import type { Scope } from '../../src/iam/operator.ts';
import { eventually } from '../support/client.ts';
import { openOperator, permissionOf, type TestOperator, type TestPerson, type TestPrincipal } from '../support/principals.ts';
import { auditOf, eventsOf } from '../support/request-events.ts';
import { send, useCases as use, type AgentPlace, type Answer, type UseCase } from '../support/use-cases.ts';

/** Ids by name: N1, N2, NP, NF, ND; C1, C2, CP; G1, G0, GD, GS, GX, GP; R1, R2; the service principals P1, PD, PX of G1, GD, GX; ROLE bound by BINDING in N1; the ADMINISTRATOR and its KEY; a Secret S1 and a credential source K1 that only policy knows; and X… for ids that nothing has. */
export type Names = Readonly<Record<string, string>>;

/** The Namespace of each name. */
const home: Names = { C1: 'N1', C2: 'N2', CP: 'NP', G1: 'N1', G0: 'N1', GD: 'N1', GS: 'N1', GX: 'N2', GP: 'NP', R1: 'N1', R2: 'N1', XG: 'N1', XC: 'N1', XR: 'N1', S1: 'N1', K1: 'N1' };

export const agentAt = (names: Names, agent: string, namespace = home[agent]!): AgentPlace => ({ namespaceId: names[namespace]!, agentId: names[agent]! });
export const revisionAt = (names: Names, revision: string, agent = 'G1') => ({ ...agentAt(names, agent), revisionId: names[revision]! });
export const configurationAt = (names: Names, configuration: string) => ({ namespaceId: names[home[configuration]!]!, configurationId: names[configuration]! });

const kinds: Readonly<Record<string, ResourceRef['kind']>> = { N: 'namespace', C: 'configuration', G: 'agent', R: 'agent_revision', S: 'secret', K: 'credential_source' };
const kindOf = (name: string): ResourceRef['kind'] => kinds[name.replace('X', '').charAt(0)] ?? 'agent';

interface Grant {
  readonly permission: ReturnType<typeof permissionOf>;
  readonly covers: 'everything' | 'Namespace' | 'resource';
  readonly name: string;
  readonly namespace: string;
}

/** Reads `agent:read=G1` (that resource), `agent:read=G1 in N2` (under another Namespace), `agent:create@N1` and `installation:read`. */
const read = (grant: string): Grant => {
  const [, permission = '', sign, name = '', under] = /^(\w+:\w+)(?:([@=])(\w+)(?: in (\w+))?)?$/.exec(grant)!;
  const isNamespace = sign === '@' || kindOf(name) === 'namespace';
  return { permission: permissionOf(permission), covers: sign === undefined ? 'everything' : sign === '@' ? 'Namespace' : 'resource', name, namespace: under ?? (isNamespace ? name : home[name]!) };
};

/** The permission a denial names, written as a grant: one `@N1` is on the collection there. */
export const judged = (names: Names, principalId: string, grant: string): NonNullable<AuditRecord['authorization']> => {
  const { permission, covers, name, namespace } = read(grant);
  const resource = covers === 'everything' ? { kind: permission.resourceKind, id: names['INSTALLATION']! } : { kind: permission.resourceKind, id: names[name]!, namespaceId: names[namespace]! };
  return { principalId, action: permission.action, resource };
};

/** What a binding or Restriction written as a grant covers. */
const scopeOf = (names: Names, { covers, name, namespace }: Grant): Scope =>
  covers === 'everything' ? {} : { namespaceId: names[namespace]!, ...(covers === 'resource' && { resourceKind: kindOf(name), resourceId: names[name]! }) };

export interface Actor extends Pick<TestPrincipal, 'id' | 'key'> {
  revoke(grant: string): Promise<void>;
}

/** Somebody with a session. */
export type Person = Pick<TestPerson, 'id' | 'cookie' | 'sessionKey'>;

export interface Fixture {
  readonly application: TestApplication;
  readonly operator: TestOperator;
  /** Shared by all rows, which therefore change none of these. */
  readonly names: Names;
  readonly administrator: Actor;
  /** A principal with these grants: `@N1` in the whole Namespace, `=G1` on that resource, without either in the Installation. */
  actor(names: Names, grants: readonly string[], namespace?: string): Promise<Actor>;
  /** Somebody with a session and these grants, or the first administrator. */
  person(names: Names, by: readonly string[] | 'the administrator'): Promise<Person>;
  /** The names with another Agent behind G1, so that it may change. */
  fresh(): Promise<Names>;
  /** Does something as the administrator, and fails when it is refused. */
  admin(useCase: UseCase): Promise<{ readonly id: string }>;
  /** Restricts for the time of a row. */
  restricted(names: Names, grant: string): Promise<() => Promise<void>>;
  /** Leaves settings behind that this build cannot read, and waits until readers see them. */
  makeUnreadable(place: AgentPlace): Promise<void>;
  /** A binding that no decider would accept; answers how to take it away again. */
  bindUnknownRole(subjectId: string): Promise<() => Promise<void>>;
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
  const { installation, principalOfAgent } = (await operator.streams.load(iam, '')).state;
  const administratorId = installation!.servicePrincipal.servicePrincipalId;
  const principalOf = (agentId: string) => principalOfAgent.get(agentId)!;
  const ROLE = (await admin(use.createRole(N1, { permissions: [{ action: 'read', resourceKind: 'configuration' }] }))).id;
  const BINDING = (await admin(use.createAccessBinding(N1, { subjectId: principalOf(G0), roleId: ROLE, resourceKind: 'configuration', resourceId: C1 }))).id;
  const policy = { ROLE, BINDING, P1: principalOf(G1), PD: principalOf(GD), PX: principalOf(GX), ADMINISTRATOR: administratorId, KEY: installation!.serviceKey.keyId };
  const unbuilt = { S1: 'sec_00000000-0000-4000-8000-000000000000', K1: 'cs_00000000-0000-4000-8000-000000000000' };
  const nothing = { XN: newId('ns'), XG: newId('agt'), XC: newId('cfg'), XR: newId('rev'), XROLE: newId('role'), XBINDING: newId('bnd'), XPRINCIPAL: newId('spn'), XKEY: newId('key') };
  const names: Names = { N1, N2, NP, NF, ND, C1, C2, CP, G1, G0, GD, GS, GX, GP, R1, R2, ...policy, ...unbuilt, ...nothing, INSTALLATION: operator.installationId };

  let made = 0;
  return {
    administrator: { id: administratorId, key, revoke: () => Promise.reject(new Error('The administrator keeps his grants')) },
    application,
    operator,
    names,
    admin,
    actor: async (known, grants, within) => {
      const principal = await operator.principal({ namespaceId: within === undefined ? undefined : known[within]! });
      const revocations = new Map<string, () => Promise<void>>();
      for (const grant of grants) {
        const one = read(grant);
        revocations.set(grant, await principal.grant([one.permission], scopeOf(known, one)));
      }
      return { ...principal, revoke: async (grant) => revocations.get(grant)!() };
    },
    person: async (known, by) => {
      if (typeof by === 'string') return operator.administrator();
      const person = await operator.person();
      for (const grant of by.map(read)) await person.grant([grant.permission], scopeOf(known, grant));
      return person;
    },
    fresh: async () => ({ ...names, G1: await agent(N1, C1, `fresh ${++made}`) }),
    restricted: async (known, grant) => {
      const one = read(grant);
      const { resourceKind: _, ...scope } = scopeOf(known, one);
      const restrictionId = await operator.restrict(one.permission, scope);
      return () => operator.unrestrict(restrictionId);
    },
    makeUnreadable: async ({ namespaceId, agentId }) => {
      const loaded = await operator.streams.load(agents, agentId);
      const settings = { harnessAuth: { method: 'of a later build' } } as never;
      await operator.streams.append(agents, loaded, [{ type: 'AgentHarnessAuthBound', data: { agentId, namespaceId, settings } }], systemContext(operator.installationId));
      const look = () => admin(use.getAgent({ namespaceId, agentId })) as Promise<{ id: string; configurationReadError?: object }>;
      await eventually('settings that cannot be read', look, ({ configurationReadError }) => configurationReadError !== undefined);
    },
    bindUnknownRole: async (subjectId) => {
      const bindingId = newId('bnd');
      const binding = { bindingId, subjectKind: 'identity' as const, subjectId, roleId: newId('role') };
      await operator.streams.append(iam, await operator.streams.load(iam, ''), [{ type: 'AccessBindingCreated', data: binding }], systemContext(operator.installationId));
      return () => operator.unbind(bindingId);
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
  expect(metadata.actor.principalId).toBe(authorization.principalId);
  expect(metadata.audit).toMatchObject({ kind: 'authorization_denial', outcome: 'denied', reasonCode: 'AUTHORIZATION_DENIED', action, authorization });
};
