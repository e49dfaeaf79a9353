/** The use cases of Namespaces, as both edges call them. (rest-contract 3.2) */
import { namespaces, register } from '../aggregates.ts';
import type { PageRequest } from '../runtime/reading.ts';
import { ref, type Operation } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { evaluate } from '../iam/evaluate.ts';
import { visibleTo } from '../iam/visibility.ts';
import { NameTaken } from '../installation/register.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Sent } from '../kernel/parse.ts';
import { DeletionOwned } from '../kernel/work.ts';
import { contextOf, withoutAudit, type Core } from '../core.ts';
import { createOnce } from '../create-once.ts';
import type { CommandContext } from '../runtime/streams.ts';
import type { CreateNamespaceInput } from './input.ts';
import type { NamespaceState } from './namespace.ts';
import { createSettlement, politely } from './settlement.ts';
import type { NamespaceReads, NamespaceView } from './view.ts';

export interface NamespaceService {
  create(caller: Caller, sent: Sent<CreateNamespaceInput>, options?: { readonly idempotencyKey?: string | undefined }): Promise<NamespaceView>;
  /** Namespaces the caller may read; the others are left out. A key frozen to one Namespace is refused, and so is nobody. */
  list(caller: Caller, page?: PageRequest): Promise<readonly NamespaceView[]>;
  get(caller: Caller, namespaceId: string): Promise<NamespaceView>;
  /** Accepts the deletion of an empty Namespace. */
  delete(caller: Caller, namespaceId: string): Promise<NamespaceView>;
  /** Creates the Namespace `default` where bootstrap has decided its id and it does not exist yet. */
  ensureDefault(namespaceId: string, context: CommandContext): Promise<void>;
}

const notFound = (): Refusal => new Refusal('NOT_FOUND', 'The Namespace was not found');

/** The view of a folded Namespace; undefined for one that is not, or no longer, there. */
export const namespaceView = (id: string, state: NamespaceState): NamespaceView | undefined =>
  state.status === 'absent' || state.status === 'removed' ? undefined : { id, name: state.name, status: state.status, createdAt: state.createdAt };

const operation = (verb: string, resource: Operation['resource']): Operation => ({ action: `openclaw.namespaces.${verb}`, resource });

export const createNamespaceService = ({ core, reads, installationId }: { readonly core: Core; readonly reads: NamespaceReads; readonly installationId: string }): NamespaceService => {
  const { streams, authorizer, waitFor } = core;
  const settlement = createSettlement(streams);
  const collection = { kind: 'namespace', id: installationId } as const;

  /** Takes the name; a holder that never came to be is fenced off first. */
  const takeName = async (namespaceId: string, name: string, context: CommandContext, guard?: () => Promise<Partial<CommandContext>>): Promise<void> => {
    try {
      await streams.execute(register, '', { type: 'TakeNamespaceName', namespaceId, name }, withoutAudit(context), guard);
    } catch (conflict) {
      if (!(conflict instanceof NameTaken)) throw conflict;
      const holderId = conflict.holderId;
      if (await politely(async () => (await streams.load(namespaces, holderId)).state.status !== 'absent')) throw conflict;
      const { state } = await streams.execute(namespaces, holderId, { type: 'AbandonNamespaceCreation', namespaceId: holderId }, withoutAudit(context));
      if (state.status !== 'absent') throw conflict;
      await streams.execute(register, '', { type: 'ReleaseNamespaceName', namespaceId: holderId, name }, withoutAudit(context));
      await takeName(namespaceId, name, context, guard);
    }
  };

  const present = (id: string, state: NamespaceState): NamespaceView => {
    const view = namespaceView(id, state);
    if (view === undefined) throw notFound();
    return view;
  };

  const create: NamespaceService['create'] = async (caller, sent, { idempotencyKey } = {}) => {
    const creating = operation('create', collection);
    const permissions = [['create', collection]] as const;
    const input = await authorizer.receive(caller, creating, permissions[0], sent);
    const grant = await authorizer.require(
      caller,
      creating,
      input.existingNamespace === undefined ? permissions : [...permissions, ['administer', ref.installation(installationId)]],
    );
    if (input.existingNamespace !== undefined) throw new Refusal('RESOURCE_CONFLICT', 'Compute cannot adopt an existing Namespace');
    return createOnce({
      caller,
      operation: 'createNamespace',
      parent: installationId,
      key: idempotencyKey,
      input,
      prefix: 'ns',
      kind: 'Namespace',
      streams,
      aggregate: namespaces,
      found: (state, namespaceId) => {
        if (state.status === 'absent') return undefined;
        const view = namespaceView(namespaceId, state);
        return { createdFrom: state.createdFrom, ...(view !== undefined && { view }) };
      },
      assertReadable: (namespaceId) => authorizer.require(caller, operation('read', ref.namespace(namespaceId)), [['read', ref.namespace(namespaceId)]]),
      make: async (namespaceId, empty, idempotency) => {
        const context = contextOf(caller, operation('create', ref.namespace(namespaceId)), grant, idempotency);
        await takeName(namespaceId, input.name, context, grant.guard);
        const decision = namespaces.decider.decide(empty.state, { type: 'CreateNamespace', namespaceId, name: input.name });
        if (decision instanceof Refusal) throw decision;
        const created = await streams.append(namespaces, empty, decision, { ...context, ...(await grant.guard()) });
        await waitFor(created.lastPosition, { work: true });
        return present(namespaceId, created.state);
      },
    });
  };

  return {
    create,

    list: async (caller, page) => {
      await authorizer.identify(caller, operation('list', collection), ['read', collection]);
      const visible = await visibleTo(authorizer, caller, 'read', 'namespace', undefined);
      return (await reads.list(visible, page)).rows;
    },

    get: async (caller, namespaceId) => {
      const resource = ref.namespace(namespaceId);
      await authorizer.require(caller, operation('read', resource), [['read', resource]]);
      const { rows, fresh } = await reads.byIds([namespaceId]);
      if (fresh && rows[0] !== undefined) return rows[0];
      return present(namespaceId, (await streams.load(namespaces, namespaceId)).state);
    },

    delete: async (caller, namespaceId) => {
      const resource = ref.namespace(namespaceId);
      const deleting = operation('delete', resource);
      const grant = await authorizer.require(caller, deleting, [['delete', resource]]);
      const { state } = await streams.load(namespaces, namespaceId);
      const initiator = state.deletion?.actor.principalId;
      const initiatorPermitted = initiator !== undefined && evaluate((await authorizer.current()).state, initiator, 'delete', resource).allowed;
      try {
        const command = { type: 'RequestNamespaceDeletion', namespaceId, actorId: caller.actor.principalId, initiatorPermitted } as const;
        const deleted = await settlement.register(namespaceId, command, contextOf(caller, deleting, grant), grant.guard);
        await waitFor(deleted.lastPosition, { work: true });
        return present(namespaceId, deleted.state);
      } catch (refusal) {
        if (!(refusal instanceof DeletionOwned)) throw refusal;
        throw await authorizer.denied(caller, deleting, ['delete', resource], refusal, { initiatingActorId: refusal.initiatingActorId });
      }
    },

    ensureDefault: async (namespaceId, context) => {
      if ((await streams.load(namespaces, namespaceId)).state.status !== 'absent') return;
      await takeName(namespaceId, 'default', context);
      const created = await streams.execute(
        namespaces,
        namespaceId,
        (state) => (state.status === 'absent' ? namespaces.decider.decide(state, { type: 'CreateNamespace', namespaceId, name: 'default' }) : []),
        context,
      );
      await waitFor(created.lastPosition, { work: true });
    },
  };
};
