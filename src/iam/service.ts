/** The use cases of a Namespace's policy: its Roles, its bindings to exact resources, its service principals. (iam-auth-audit section 4, rest-contract 3.9) */
import { namespaces } from '../aggregates.ts';
import type { Core } from '../core.ts';
import { Refusal } from '../kernel/errors.ts';
import type { ResourceKind, ResourceRef } from '../kernel/event.ts';
import { newId } from '../kernel/ids.ts';
import type { Sent } from '../kernel/parse.ts';
import { judgedEach, only, type ListsBelow, type PageRequest } from '../runtime/reading.ts';
import { ref, type Grant, type Operation, type Permission } from './authorizer.ts';
import type { Caller } from './caller.ts';
import { createChangePolicy, type PolicyChange } from './change.ts';
import { iamDecider, invalid, type IamCommand } from './iam.ts';
import type { CreateAccessBindingInput, CreateRoleInput } from './input.ts';
import type { ExactBinding } from './rules.ts';
import type { Policy } from './policy.ts';
import { createTargets } from './targets.ts';
import { accessBindingView, roleView, type AccessBindingView, type RoleView, type ServicePrincipalView } from './view.ts';

export interface RolePlace {
  readonly namespaceId: string;
  readonly roleId: string;
}

export interface AccessBindingPlace {
  readonly namespaceId: string;
  readonly bindingId: string;
}

/** Every one takes `installation:administer` and `read` on exactly the Namespace. */
export interface PolicyService {
  /** In creation order. */
  listRoles(caller: Caller, namespaceId: string, page?: PageRequest): Promise<readonly RoleView[]>;
  /** {@link listRoles} of several Namespaces that are there, at the cost of one. */
  listRolesBelow(caller: Caller, namespaceIds: readonly string[], page?: PageRequest): Promise<ListsBelow<RoleView>>;
  createRole(caller: Caller, namespaceId: string, sent: Sent<CreateRoleInput>): Promise<RoleView>;
  getRole(caller: Caller, place: RolePlace): Promise<RoleView>;
  /** @throws Refusal RESOURCE_CONFLICT while it is bound */
  deleteRole(caller: Caller, place: RolePlace): Promise<void>;
  /** In creation order; those of the whole Namespace are among them. */
  listAccessBindings(caller: Caller, namespaceId: string, page?: PageRequest): Promise<readonly AccessBindingView[]>;
  /** {@link listAccessBindings} of several Namespaces that are there, at the cost of one. */
  listAccessBindingsBelow(caller: Caller, namespaceIds: readonly string[], page?: PageRequest): Promise<ListsBelow<AccessBindingView>>;
  /** Takes `read` on exactly the target as well. @throws Refusal INVALID_REQUEST that names the member which cannot be bound */
  createAccessBinding(caller: Caller, namespaceId: string, sent: Sent<CreateAccessBindingInput>): Promise<AccessBindingView>;
  getAccessBinding(caller: Caller, place: AccessBindingPlace): Promise<AccessBindingView>;
  deleteAccessBinding(caller: Caller, place: AccessBindingPlace): Promise<void>;
  /** An ordinary one, without grants. */
  createServicePrincipal(caller: Caller, namespaceId: string): Promise<ServicePrincipalView>;
}

const notFound = (what: string): Refusal => new Refusal('NOT_FOUND', `The ${what} was not found`);

const operation = (verb: string, namespaceId: string): Operation => ({ action: `openclaw.iam.${verb}`, resource: ref.namespace(namespaceId) });

const cut = <Row extends { readonly id: string }>(rows: readonly Row[], page: PageRequest | undefined): readonly Row[] => {
  if (page === undefined) return rows;
  const first = page.from === null ? 0 : rows.findIndex(({ id }) => id === page.from);
  return first < 0 ? [] : rows.slice(first, first + page.limit);
};

/** The resource a binding is about: its target, or the Namespace it holds in. */
const targetOf = ({ namespaceId, resourceKind, resourceId }: AccessBindingView): ResourceRef =>
  resourceKind === undefined || resourceId === undefined ? ref.namespace(namespaceId) : ref.in(resourceKind as ResourceKind, namespaceId, resourceId);

export const createPolicyService = ({ core, installationId }: { readonly core: Core; readonly installationId: string }): PolicyService => {
  const { streams, authorizer } = core;
  const targets = createTargets(streams);
  const changePolicy = createChangePolicy(core);

  const administer: Permission = ['administer', ref.installation(installationId)];
  const needed = (namespaceId: string): readonly Permission[] => [administer, ['read', ref.namespace(namespaceId)]];

  const opened = <T>(caller: Caller, namespaceId: string, verb: string, sent: Sent<T>): Promise<T> => authorizer.receive(caller, operation(verb, namespaceId), administer, sent);

  const assertNamespace = async (namespaceId: string): Promise<void> => {
    const { status } = (await streams.load(namespaces, namespaceId)).state;
    if (status === 'absent' || status === 'removed') throw notFound('Namespace');
  };

  /** The policy, for who may read it. */
  const read = async (caller: Caller, namespaceId: string, verb: string) => {
    await authorizer.require(caller, operation(verb, namespaceId), needed(namespaceId));
    await assertNamespace(namespaceId);
    return (await authorizer.current(caller.arrivedAt)).state;
  };

  /** The views of each Namespace, for who may read its policy. */
  const viewsBelow = <Member, View extends { readonly id: string; readonly namespaceId: string }>(verb: string, members: (policy: Policy) => Iterable<Member>, viewOf: (member: Member) => View | undefined) =>
    (caller: Caller, namespaceIds: readonly string[], page?: PageRequest): Promise<ListsBelow<View>> =>
      judgedEach(
        namespaceIds,
        (namespaceId) => authorizer.require(caller, operation(verb, namespaceId), needed(namespaceId)),
        async (admitted) => {
          const { state } = await authorizer.current(caller.arrivedAt);
          const views = [...members(state)].map(viewOf).filter((view) => view !== undefined);
          const found = Map.groupBy(views, ({ namespaceId }) => namespaceId);
          return admitted.map((namespaceId) => cut(found.get(namespaceId) ?? [], page));
        },
      );
  const listRolesBelow = viewsBelow('roles.list', ({ roles }) => roles.values(), roleView);
  const listAccessBindingsBelow = viewsBelow('access_bindings.list', ({ bindings }) => bindings.values(), accessBindingView);

  /** The list of one Namespace. @throws Refusal NOT_FOUND once the caller may read it */
  const listIn = async <View>(namespaceId: string, lists: ListsBelow<View>): Promise<readonly View[]> => {
    const views = only(lists);
    await assertNamespace(namespaceId);
    return views;
  };

  const admit = async (caller: Caller, namespaceId: string, verb: string, more: readonly Permission[] = []): Promise<Pick<PolicyChange, 'caller' | 'operation' | 'permissions' | 'grant'>> => {
    const asked = { caller, operation: operation(verb, namespaceId), permissions: [...needed(namespaceId), ...more] };
    const grant: Grant = await authorizer.require(caller, asked.operation, asked.permissions);
    await assertNamespace(namespaceId);
    return { ...asked, grant };
  };

  /** A Namespace that policy has forgotten takes nothing new, however late it comes. */
  const decided = (namespaceId: string, command: IamCommand): Pick<PolicyChange, 'decide'> => ({
    decide: (policy) => (policy.removed.has(namespaceId) ? notFound('Namespace') : iamDecider.decide(policy, command)),
  });

  const assertTarget = async (namespaceId: string, { resourceKind, resourceId }: CreateAccessBindingInput): Promise<void> => {
    if (!(await targets.exists(namespaceId, resourceKind, resourceId))) throw invalid('/resourceId', 'The target was not found in this Namespace');
  };

  /** The service principal of an Agent goes away with it. */
  const assertSubject = async (caller: Caller, namespaceId: string, { subjectId }: CreateAccessBindingInput): Promise<void> => {
    const agentId = (await authorizer.current(caller.arrivedAt)).state.identities.get(subjectId)?.agentId;
    if (agentId !== undefined && !(await targets.isLiveAgent(namespaceId, agentId))) throw invalid('/subjectId', 'The Agent of this service principal cannot be bound');
  };

  return {
    listRoles: async (caller, namespaceId, page) => listIn(namespaceId, await listRolesBelow(caller, [namespaceId], page)),
    listRolesBelow,

    createRole: async (caller, namespaceId, sent) => {
      const { name, permissions } = await opened(caller, namespaceId, 'roles.create', sent);
      const admitted = await admit(caller, namespaceId, 'roles.create');
      const role = { roleId: newId('role'), namespaceId, permissions: permissions.map(({ action, resourceKind }) => ({ action, resourceKind })), ...(name !== undefined && { name }) };
      await changePolicy({ ...admitted, ...decided(namespaceId, { type: 'CreateRole', role }), about: { resource: ref.namespace(namespaceId), details: { roleId: role.roleId, permissions: role.permissions } } });
      return roleView(role)!;
    },

    getRole: async (caller, { namespaceId, roleId }) => {
      const role = (await read(caller, namespaceId, 'roles.read')).roles.get(roleId);
      if (role?.namespaceId !== namespaceId) throw notFound('Role');
      return roleView(role)!;
    },

    deleteRole: async (caller, { namespaceId, roleId }) => {
      const admitted = await admit(caller, namespaceId, 'roles.delete');
      const role = (await authorizer.current(caller.arrivedAt)).state.roles.get(roleId);
      if (role?.namespaceId !== namespaceId) throw notFound('Role');
      const details = { roleId, permissions: role.permissions };
      await changePolicy({ ...admitted, ...decided(namespaceId, { type: 'DeleteRole', roleId, namespaceId }), about: { resource: ref.namespace(namespaceId), details } });
    },

    listAccessBindings: async (caller, namespaceId, page) => listIn(namespaceId, await listAccessBindingsBelow(caller, [namespaceId], page)),
    listAccessBindingsBelow,

    createAccessBinding: async (caller, namespaceId, sent) => {
      const input = await opened(caller, namespaceId, 'access_bindings.create', sent);
      const { subjectKind, subjectId, roleId, resourceKind, resourceId } = input;
      if (resourceKind === 'namespace' && resourceId !== namespaceId) throw invalid('/resourceId', 'The target is another Namespace');
      const resource = ref.in(resourceKind, namespaceId, resourceId);
      const admitted = await admit(caller, namespaceId, 'access_bindings.create', [['read', resource]]);
      await assertTarget(namespaceId, input);
      await assertSubject(caller, namespaceId, input);
      const binding: ExactBinding = { bindingId: newId('bnd'), namespaceId, subjectKind, subjectId, roleId, resourceKind, resourceId };
      const details = { bindingId: binding.bindingId, subjectKind, subjectId, roleId };
      await changePolicy({ ...admitted, ...decided(namespaceId, { type: 'BindResource', binding }), about: { resource, details } });
      return accessBindingView(binding)!;
    },

    getAccessBinding: async (caller, { namespaceId, bindingId }) => {
      const binding = (await read(caller, namespaceId, 'access_bindings.read')).bindings.get(bindingId);
      if (binding?.namespaceId !== namespaceId) throw notFound('access binding');
      return accessBindingView(binding)!;
    },

    deleteAccessBinding: async (caller, { namespaceId, bindingId }) => {
      const admitted = await admit(caller, namespaceId, 'access_bindings.delete');
      const binding = (await authorizer.current(caller.arrivedAt)).state.bindings.get(bindingId);
      if (binding?.namespaceId !== namespaceId) throw notFound('access binding');
      const { subjectKind, subjectId, roleId } = binding;
      const about = { resource: targetOf(accessBindingView(binding)!), details: { bindingId, subjectKind, subjectId, roleId } };
      await changePolicy({ ...admitted, ...decided(namespaceId, { type: 'DeleteAccessBinding', bindingId, namespaceId }), about });
    },

    createServicePrincipal: async (caller, namespaceId) => {
      const admitted = await admit(caller, namespaceId, 'service_principals.create');
      const servicePrincipalId = newId('spn');
      const about = { resource: ref.namespace(namespaceId), details: { servicePrincipalId } };
      await changePolicy({ ...admitted, ...decided(namespaceId, { type: 'CreateServicePrincipal', servicePrincipalId, namespaceId }), about });
      return { id: servicePrincipalId, namespaceId };
    },
  };
};
