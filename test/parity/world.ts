/** Two equal Namespaces in one application, one for each edge, and fresh resources in them. No worker runs: what it would find is told. */
import { newId } from '../../src/kernel/ids.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { openOperator, permissionOf, type TestOperator } from '../support/principals.ts';
import { edges, send, useCases, type AgentPlace, type Answer, type ConfigurationPlace, type EdgeName, type RevisionPlace } from '../support/use-cases.ts';

type Answered = Readonly<Record<string, unknown>> & { readonly id: string };

export interface World {
  readonly edge: EdgeName;
  /** Ready, and holding one Configuration. */
  readonly namespaceId: string;
  readonly configurationId: string;
  /** Another ready one, and a Configuration in it. */
  readonly foreign: ConfigurationPlace;
  readonly provisioning: string;
  readonly failed: string;
  readonly deleting: string;
  /** Ids that nothing has. */
  readonly nothing: AgentPlace & ConfigurationPlace & RevisionPlace & { readonly roleId: string; readonly bindingId: string; readonly keyId: string };
  /** Unique in the Installation, and the same on both edges once the edge's own name is masked. */
  name(what: string): string;
  namespace(): Promise<string>;
  configuration(values?: object): Promise<ConfigurationPlace>;
  agent(input?: object, namespaceId?: string): Promise<AgentPlace>;
  deployed(): Promise<RevisionPlace>;
  stopping(): Promise<AgentPlace>;
  beingDeleted(): Promise<AgentPlace>;
  /** Permits to read Agents. Answers its id. */
  role(...permissions: readonly string[]): Promise<string>;
  /** What binds such a Role to the service principal of an Agent of its own, on that Agent. */
  bindable(): Promise<{ readonly subjectId: string; readonly roleId: string; readonly resourceKind: string; readonly resourceId: string }>;
  /** Answers its id. */
  binding(): Promise<string>;
  /** A service principal of the Namespace. */
  servicePrincipal(): Promise<string>;
  /** The id of one of its keys. */
  serviceKey(): Promise<string>;
  /** Begun by another principal who could repeat it, and failed for good. */
  deletionOfAnother(): Promise<AgentPlace>;
}

export interface Worlds {
  readonly application: TestApplication;
  readonly operator: TestOperator;
  readonly each: Readonly<Record<EdgeName, World>>;
  /** The keys of who may do everything, and of who may do nothing. */
  readonly keys: { readonly administrator: string; readonly stranger: string };
  close(): Promise<void>;
}

const createWorld = async (edge: EdgeName, application: TestApplication, operator: TestOperator): Promise<World> => {
  const { origin, key } = application;
  const taken = new Map<string, number>();

  const done = async (answer: Promise<Answer>): Promise<Answered> => {
    const { code, message, data } = await answer;
    if (code !== null) throw new Error(`Preparing a case was refused: ${code}, ${message}`);
    return data as Answered;
  };
  const admin = (useCase: Parameters<typeof send>[2]) => done(send('REST', origin, useCase, key));

  const name = (what: string): string => {
    const number = (taken.get(what) ?? 0) + 1;
    taken.set(what, number);
    return `${what} ${number} of ${edge}`;
  };
  const provisioned = async () => (await admin(useCases.createNamespace({ name: name('namespace') }))).id;
  const namespace = async () => {
    const id = await provisioned();
    await operator.tell.namespaceReady(id);
    return id;
  };
  const configurationIn = async (namespaceId: string, values: object = {}): Promise<ConfigurationPlace> => ({
    namespaceId,
    configurationId: (await admin(useCases.createConfiguration(namespaceId, { kind: 'agent', values }))).id,
  });

  const [namespaceId, other, provisioning, failed, deleting] = [await namespace(), await namespace(), await provisioned(), await provisioned(), await namespace()];
  const { configurationId } = await configurationIn(namespaceId);
  await operator.tell.namespaceFailed(failed);
  await admin(useCases.deleteNamespace(deleting));

  const agent: World['agent'] = async (input = {}, at = namespaceId) => {
    const bound = at === namespaceId ? configurationId : (await configurationIn(at)).configurationId;
    const { id } = await admin(useCases.createAgent(at, { name: name('agent'), configurationId: bound, harnessAuth: { method: 'runtime' }, ...input }));
    return { namespaceId: at, agentId: id };
  };
  const deployed = async () => {
    const place = await agent();
    return { ...place, revisionId: (await admin(useCases.deployAgent(place))).id };
  };
  const role: World['role'] = async (...permissions) => {
    const held = (permissions.length === 0 ? ['agent:read'] : permissions).map(permissionOf);
    return (await admin(useCases.createRole(namespaceId, { permissions: held.map(({ action, resourceKind }) => ({ action, resourceKind })) }))).id;
  };
  const bindable = async () => {
    const { agentId } = await agent();
    const { servicePrincipalId } = await admin(useCases.getAgent({ namespaceId, agentId }));
    return { subjectId: servicePrincipalId as string, roleId: await role(), resourceKind: 'agent', resourceId: agentId };
  };
  const servicePrincipal = async () => (await admin(useCases.createServicePrincipal(namespaceId))).id;
  return {
    edge,
    role,
    bindable,
    binding: async () => (await admin(useCases.createAccessBinding(namespaceId, await bindable()))).id,
    servicePrincipal,
    serviceKey: async () => (await admin(useCases.issueServiceKey({ servicePrincipalId: await servicePrincipal(), namespaceId, name: 'parity' }))).id,
    namespaceId,
    configurationId,
    foreign: await configurationIn(other),
    provisioning,
    failed,
    deleting,
    nothing: { namespaceId, agentId: newId('agt'), configurationId: newId('cfg'), revisionId: newId('rev'), roleId: newId('role'), bindingId: newId('bnd'), keyId: newId('key') },
    name,
    namespace,
    configuration: (values) => configurationIn(namespaceId, values),
    agent,
    deployed,
    stopping: async () => {
      const place = await deployed();
      await admin(useCases.stopAgent(place));
      return place;
    },
    beingDeleted: async () => {
      const place = await agent();
      await admin(useCases.deleteAgent(place));
      return place;
    },
    deletionOfAnother: async () => {
      const place = await agent();
      const another = await operator.principal();
      await another.grant([permissionOf('agent:delete')], { namespaceId });
      await done(send('REST', origin, useCases.deleteAgent(place), another.key));
      await operator.tell.teardownFailed(place.agentId);
      return place;
    },
  };
};

export const createWorlds = async (): Promise<Worlds> => {
  const application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' } });
  const operator = await openOperator(application);
  const [REST, GraphQL] = [await createWorld(edges[0]!, application, operator), await createWorld(edges[1]!, application, operator)];
  return {
    application,
    operator,
    each: { REST, GraphQL },
    keys: { administrator: application.key, stranger: (await operator.principal()).key },
    close: async () => {
      await operator.close();
      await application.close();
    },
  };
};
