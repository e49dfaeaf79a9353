/** The evaluator against a plain model of the specification, and the laws no policy may break, over random policies. (iam-auth-audit 2.2 to 2.4) */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Authorizer } from '../../src/iam/authorizer.ts';
import { evaluate, type Action } from '../../src/iam/evaluate.ts';
import { iamDecider, type IamCommand } from '../../src/iam/iam.ts';
import type { AccessBinding, IamEvent, Restriction } from '../../src/iam/messages.ts';
import { visibleTo } from '../../src/iam/visibility.ts';
import { isRefusal } from '../../src/kernel/decider.ts';
import type { ResourceRef } from '../../src/kernel/event.ts';
import { envelopeAt, fold } from '../support/specs.ts';
import { isSound, judgeOf } from './reference-model.ts';

const run = { seed: 20_261_130, numRuns: 60 };

const actions = ['create', 'read', 'operate'] as const;
const kinds = ['installation', 'namespace', 'configuration', 'secret', 'agent'] as const;
const place = fc.constantFrom(undefined, 'ns_1', 'ns_2');
const permission = fc.record({ action: fc.constantFrom(...actions), resourceKind: fc.constantFrom(...kinds) });
const placed = (namespaceId: string | undefined) => (namespaceId === undefined ? {} : { namespaceId });

const optional = <T extends object>(shape: T): T => Object.fromEntries(Object.entries(shape).filter(([, value]) => value !== undefined)) as T;

interface Request {
  readonly identity: string;
  readonly action: Action;
  readonly resource: ResourceRef;
}

/** Everything that can be asked, malformed references and an unknown identity included. */
const requests: readonly Request[] = ['prn_1', 'prn_2', 'spn_0', 'spn_1', 'nobody'].flatMap((identity) =>
  actions.flatMap((action) =>
    kinds.flatMap((kind) =>
      ['a', 'ns_1', 'ns_2'].flatMap((id) => [undefined, 'ns_1', 'ns_2'].map((namespaceId): Request => ({ identity, action, resource: { kind, id, ...placed(namespaceId) } }))),
    ),
  ),
);

const scope = fc.oneof(
  { weight: 2, arbitrary: fc.constant({ resourceKind: undefined, resourceId: undefined }) },
  { weight: 2, arbitrary: fc.record({ resourceKind: fc.constantFrom(...kinds), resourceId: fc.constantFrom('a', 'b', 'ns_1', 'ins_1') }) },
);
const binding = (bindingId: string): fc.Arbitrary<AccessBinding> =>
  fc
    .record({
      bindingId: fc.constant(bindingId),
      subject: fc.constantFrom(['identity', 'prn_1'] as const, ['identity', 'prn_2'] as const, ['identity', 'spn_0'] as const, ['identity', 'spn_1'] as const, ['group', 'grp_0'] as const, ['group', 'grp_1'] as const),
      roleId: fc.constantFrom('role_0', 'role_1', 'role_2'),
      namespaceId: place,
      scope,
    })
    .map(({ subject: [subjectKind, subjectId], scope, ...rest }) => optional({ ...rest, subjectKind, subjectId, ...scope }) as AccessBinding);
const restriction = (restrictionId: string): fc.Arbitrary<Restriction> =>
  fc.record({ permission, namespaceId: place, resourceId: fc.constantFrom(undefined, 'a', 'ns_1') }).map(({ permission, ...rest }) => optional({ restrictionId, ...permission, ...rest }) as Restriction);

const created = <T extends IamEvent['type']>(type: T) => (data: Extract<IamEvent, { type: T }>['data']) => ({ type, data }) as IamEvent;
const many = <T>(prefix: string, one: (id: string) => fc.Arbitrary<T>, most: number) => fc.integer({ min: 0, max: most }).chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => one(`${prefix}_${index}`))));

const people: readonly IamEvent[] = [
  { type: 'PrincipalCreated', data: { principalId: 'prn_1', issuer: 'local', subject: 'a' } },
  { type: 'PrincipalCreated', data: { principalId: 'prn_2', issuer: 'local', subject: 'b' } },
  { type: 'ServicePrincipalCreated', data: { servicePrincipalId: 'spn_0' } },
  { type: 'ServicePrincipalCreated', data: { servicePrincipalId: 'spn_1', namespaceId: 'ns_1' } },
  { type: 'GroupCreated', data: { groupId: 'grp_0', name: 'everywhere' } },
  { type: 'GroupCreated', data: { groupId: 'grp_1', name: 'there', namespaceId: 'ns_1' } },
];
const roles = fc
  .tuple(...['role_0', 'role_1', 'role_2'].map((roleId) => fc.record({ roleId: fc.constant(roleId), permissions: fc.uniqueArray(permission, { minLength: 1, maxLength: 6, selector: JSON.stringify }) })))
  .map((all) => all.map((role) => created('RoleCreated')({ ...role, ...placed(role.roleId === 'role_1' ? 'ns_1' : undefined) })));
const memberships = fc.subarray([
  ['grp_0', 'prn_1', undefined],
  ['grp_0', 'prn_2', undefined],
  ['grp_1', 'prn_1', 'ns_1'],
] as const).map((all) => all.map(([groupId, principalId, namespaceId]) => created('GroupMembershipCreated')({ groupId, principalId, ...placed(namespaceId) })));
const bindings = many('bnd', binding, 8).map((all) => all.map(created('AccessBindingCreated')));
const restrictions = many('rst', restriction, 2).map((all) => all.map(created('RestrictionCreated')));

const deletions = fc.subarray<IamEvent>([
  { type: 'AccessBindingDeleted', data: { bindingId: 'bnd_0' } },
  { type: 'AccessBindingDeleted', data: { bindingId: 'bnd_1' } },
  { type: 'RestrictionDeleted', data: { restrictionId: 'rst_0' } },
  { type: 'GroupMembershipDeleted', data: { groupId: 'grp_0', principalId: 'prn_1' } },
  { type: 'GroupMembershipDeleted', data: { groupId: 'grp_1', principalId: 'prn_1', namespaceId: 'ns_1' } },
  { type: 'RoleDeleted', data: { roleId: 'role_2' } },
  { type: 'GroupDeleted', data: { groupId: 'grp_1', principalIds: ['prn_1'] } },
]);

/** What keeps every rule: each binding and Restriction that would break one is left out. */
const soundHistory = fc
  .tuple(roles, memberships, bindings, restrictions)
  .map(([some, joined, ...more]) => [...people, ...some].concat(joined, ...more.map((events) => events.filter((event) => isSound([...people, ...some, event])))));

const wild = fc.oneof(binding('bnd_wild').map(created('AccessBindingCreated')), restriction('rst_wild').map(created('RestrictionCreated')), fc.constant(people[0]!));

/** Whatever happened: now and then a rule is broken, a principal made twice, and what was made is taken away. */
const anyHistory = fc.tuple(soundHistory, fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.tuple(wild) }), deletions).map((parts) => parts.flat());

const judged = (events: readonly IamEvent[]) => {
  const policy = fold(iamDecider, events);
  return ({ identity, action, resource }: Request) => evaluate(policy, identity, action, resource);
};

/** Requests that a history allows, or denies. */
const asked = (events: readonly IamEvent[], allowed: boolean): readonly Request[] => {
  const verdict = judged(events);
  return requests.filter((request) => verdict(request).allowed === allowed);
};

const expectEach = (some: readonly Request[], events: readonly IamEvent[], allowed: boolean): void => {
  const verdict = judged(events);
  expect(some.filter((request) => verdict(request).allowed !== allowed)).toEqual([]);
};

describe('the evaluator', () => {
  it.each([
    ['sound', soundHistory],
    ['any', anyHistory],
  ])('judges %s policies as the plain model does, with the same evidence', (_, history) => {
    let allowed = 0;
    fc.assert(
      fc.property(history, (events) => {
        const [verdict, plainly] = [judged(events), judgeOf(events)];
        for (const request of requests) {
          const { reason: _, ...seen } = verdict(request);
          const expected = plainly(request.identity, request.action, request.resource);
          if (JSON.stringify(seen) !== JSON.stringify(expected)) expect({ request, ...seen }).toEqual({ request, ...expected });
          if (seen.allowed) allowed += 1;
        }
      }),
      run,
    );
    expect(allowed, 'permissions granted among the samples').toBeGreaterThan(100);
  });
});

describe('a list', () => {
  const ids = ['a', 'b', 'ns_1', 'ns_2', 'ins_1'];
  const lists = [
    { kind: 'namespace', namespaceId: undefined, ids: ['ns_1', 'ns_2', 'a'] } as const,
    ...(['configuration', 'secret', 'agent'] as const).flatMap((kind) => ['ns_1', 'ns_2'].map((namespaceId) => ({ kind, namespaceId, ids }))),
  ];
  const referenceIn = (kind: ResourceRef['kind'], namespaceId: string | undefined, id: string): ResourceRef => ({ kind, id, namespaceId: namespaceId ?? id });

  it('shows exactly what may be read one by one', async () => {
    let shown = 0;
    await fc.assert(
      fc.asyncProperty(anyHistory, async (events) => {
        const state = fold(iamDecider, events);
        const authorizer = { current: async () => ({ state }) } as unknown as Authorizer;
        for (const principalId of ['prn_1', 'prn_2', 'spn_0', 'spn_1', 'nobody'])
          for (const { kind, namespaceId, ids } of lists) {
            const caller = { actor: { principalId, kind: 'principal' }, keyNamespaceId: undefined, arrivedAt: 0, requestId: '' } as const;
            const { only, except } = await visibleTo(authorizer, caller, 'read', kind, namespaceId);
            const seen = ids.filter((id) => (only === undefined || only.includes(id)) && !except.includes(id));
            const expected = ids.filter((id) => evaluate(state, principalId, 'read', referenceIn(kind, namespaceId, id)).allowed);
            expect({ principalId, kind, namespaceId, seen }).toEqual({ principalId, kind, namespaceId, seen: expected });
            shown += seen.length;
          }
      }),
      { ...run, numRuns: 200 },
    );
    expect(shown, 'resources shown among the samples').toBeGreaterThan(100);
  });
});

describe('a list, of who may read everything', () => {
  const role: IamEvent = { type: 'RoleCreated', data: { roleId: 'role_0', permissions: kinds.map((resourceKind) => ({ action: 'read', resourceKind })) } };
  const everywhere = (subjectId: string, more: object = {}): IamEvent => created('AccessBindingCreated')({ bindingId: `bnd_${subjectId}`, subjectKind: 'identity', subjectId, roleId: 'role_0', ...more });
  const seen = async (more: readonly IamEvent[], kind: ResourceRef['kind'], namespaceId: string | undefined, caller: object = {}) => {
    const state = fold(iamDecider, [...people, role, everywhere('prn_1'), everywhere('spn_0'), everywhere('spn_1', { namespaceId: 'ns_1' }), ...more]);
    const asking = { actor: { principalId: 'prn_1', kind: 'principal' }, keyNamespaceId: undefined, arrivedAt: 0, requestId: '', ...caller } as const;
    return visibleTo({ current: async () => ({ state }) } as unknown as Authorizer, asking, 'read', kind, namespaceId);
  };
  const restricted = (data: object) => created('RestrictionCreated')({ restrictionId: 'rst_0', action: 'read', resourceKind: 'namespace', ...data });

  it('leaves out what a Restriction is about, a Namespace by either of its names, and nothing else', async () => {
    expect(await seen([], 'namespace', undefined)).toEqual({ only: undefined, except: [] });
    expect(await seen([restricted({ namespaceId: 'ns_1' })], 'namespace', undefined)).toEqual({ only: undefined, except: ['ns_1'] });
    expect(await seen([restricted({ resourceId: 'ns_1' })], 'namespace', undefined)).toEqual({ only: undefined, except: ['ns_1'] });
    expect(await seen([restricted({ resourceKind: 'agent', resourceId: 'a' })], 'agent', 'ns_1')).toEqual({ only: undefined, except: ['a'] });
    expect(await seen([restricted({ resourceKind: 'agent', resourceId: 'a', namespaceId: 'ns_2' })], 'agent', 'ns_1')).toEqual({ only: undefined, except: [] });
    expect(await seen([restricted({ resourceKind: 'agent', namespaceId: 'ns_1' })], 'agent', 'ns_1')).toEqual({ only: [], except: [] });
    expect(await seen([restricted({ action: 'update', resourceKind: 'agent', resourceId: 'a' })], 'agent', 'ns_1')).toEqual({ only: undefined, except: [] });
  });

  it('is empty for a key outside of its Namespace, and for one whose principal has another scope', async () => {
    const withKey = (principalId: string, keyNamespaceId: string | undefined) => ({ actor: { principalId, kind: 'service_principal', serviceKeyId: 'key_1' }, keyNamespaceId });
    expect(await seen([], 'agent', 'ns_1', withKey('spn_1', 'ns_1'))).toEqual({ only: undefined, except: [] });
    expect(await seen([], 'agent', 'ns_2', withKey('spn_1', 'ns_1'))).toEqual({ only: [], except: [] });
    expect(await seen([], 'namespace', undefined, withKey('spn_1', 'ns_1')), 'Namespaces are of the Installation').toEqual({ only: [], except: [] });
    expect(await seen([], 'agent', 'ns_1', withKey('spn_0', undefined))).toEqual({ only: undefined, except: [] });
    expect(await seen([], 'agent', 'ns_1', withKey('spn_0', 'ns_1'))).toEqual({ only: [], except: [] });
    expect(await seen([], 'agent', 'ns_1', withKey('spn_1', undefined))).toEqual({ only: [], except: [] });
  });
});

describe('whatever the policy', () => {
  it('a Restriction never allows', () => {
    fc.assert(
      fc.property(soundHistory, restriction('rst_new'), (events, data) => expectEach(asked(events, false), [...events, created('RestrictionCreated')(data)], false)),
      run,
    );
  });

  it('taking away a binding, a Role or a membership never allows', () => {
    const withoutOne = ({ type, data }: IamEvent): readonly IamEvent[] => {
      if (type === 'AccessBindingCreated') return [{ type: 'AccessBindingDeleted', data: { bindingId: data.bindingId } }];
      if (type === 'RoleCreated') return [{ type: 'RoleDeleted', data: { roleId: data.roleId } }];
      return type === 'GroupMembershipCreated' ? [{ type: 'GroupMembershipDeleted', data }] : [];
    };
    fc.assert(
      fc.property(soundHistory, (events) => {
        const denied = asked(events, false);
        for (const gone of events.flatMap(withoutOne)) expectEach(denied, [...events, gone], false);
      }),
      { ...run, numRuns: 20 },
    );
  });

  it('a binding that keeps the rules never denies', () => {
    fc.assert(
      fc.property(soundHistory, binding('bnd_new'), (events, data) => {
        const more = [...events, created('AccessBindingCreated')(data)];
        if (isSound(more)) expectEach(asked(events, true), more, true);
      }),
      run,
    );
  });

  it('no action implies another: all other permissions together do not make up for one', () => {
    const everything = kinds.flatMap((resourceKind) => actions.map((action) => ({ action, resourceKind })));
    fc.assert(
      fc.property(soundHistory, permission, (events, { action, resourceKind }) => {
        const permissions = everything.filter((one) => one.action !== action || one.resourceKind !== resourceKind);
        const others = events.map((event): IamEvent => (event.type === 'RoleCreated' ? { type: 'RoleCreated', data: { ...event.data, permissions } } : event));
        expectEach(requests.filter((request) => request.action === action && request.resource.kind === resourceKind), others, false);
      }),
      run,
    );
  });

  it('nothing granted in one Namespace reaches into another', () => {
    fc.assert(
      fc.property(soundHistory, (events) => {
        const local = events.filter((event) => event.type !== 'AccessBindingCreated' || event.data.namespaceId === 'ns_1');
        expectEach(requests.filter(({ resource }) => resource.namespaceId !== 'ns_1'), local, false);
      }),
      run,
    );
  });

  it('the evidence of a grant is what grants: without its bindings there is none', () => {
    fc.assert(
      fc.property(soundHistory, (events) => {
        const verdict = judged(events);
        for (const request of asked(events, true).slice(0, 10)) {
          const unbound = verdict(request).evidence.bindingIds.map((bindingId): IamEvent => ({ type: 'AccessBindingDeleted', data: { bindingId } }));
          expectEach([request], [...events, ...unbound.slice(1)], true);
          expectEach([request], [...events, ...unbound], false);
        }
      }),
      run,
    );
  });
});

const command: fc.Arbitrary<IamCommand> = fc.oneof(
  fc.integer({ min: 0, max: 5 }).chain((number) => binding(`bnd_${number}`)).map((data): IamCommand => ({ type: 'CreateAccessBinding', binding: data })),
  fc.integer({ min: 0, max: 2 }).chain((number) => restriction(`rst_${number}`)).map((data): IamCommand => ({ type: 'CreateRestriction', restriction: data })),
  fc.constantFrom<IamCommand>(
    ...['role_0', 'role_1', 'role_2'].flatMap((roleId): IamCommand[] => [
      { type: 'CreateRole', role: { roleId, permissions: [{ action: 'read', resourceKind: 'agent' }], ...placed(roleId === 'role_1' ? 'ns_1' : undefined) } },
      { type: 'DeleteRole', roleId },
    ]),
    ...['grp_0', 'grp_1'].flatMap((groupId): IamCommand[] => [
      { type: 'CreateGroup', group: { groupId, name: 'again', ...placed(groupId === 'grp_1' ? 'ns_1' : undefined) } },
      { type: 'DeleteGroup', groupId },
      { type: 'CreateGroupMembership', groupId, principalId: 'prn_1' },
      { type: 'CreateGroupMembership', groupId, principalId: 'spn_0' },
      { type: 'DeleteGroupMembership', groupId, principalId: 'prn_1' },
    ]),
    { type: 'CreateServicePrincipal', servicePrincipalId: 'spn_1', namespaceId: 'ns_1', agentId: 'agt_1' },
    { type: 'RemoveServicePrincipalOfAgent', agentId: 'agt_1' },
    { type: 'RemoveAgentBindings', agentId: 'agt_1', namespaceId: 'ns_1', servicePrincipalId: 'spn_1', revisionIds: ['rev_1'] },
    { type: 'RemoveResourcePolicy', resourceKind: 'configuration', resourceId: 'a', namespaceId: 'ns_1' },
    { type: 'RemoveResourcePolicy', resourceKind: 'namespace', resourceId: 'ns_1', namespaceId: 'ns_1' },
    { type: 'RemoveServicePrincipals', namespaceId: 'ns_1', servicePrincipalIds: ['spn_1'] },
    { type: 'IssueServiceKey', key: { keyId: 'key_1', servicePrincipalId: 'spn_1', namespaceId: 'ns_1', name: 'k', expiresAt: '' } },
    { type: 'DeleteAccessBinding', bindingId: 'bnd_0' },
    { type: 'DeleteRestriction', restrictionId: 'rst_0' },
  ),
);

it('no sequence of commands leaves a policy that denies everything', () => {
  const start = people.slice(0, 3).reduce((policy, event, revision) => iamDecider.evolve(policy, event, envelopeAt(revision)), iamDecider.initial);
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const end = commands.reduce((policy, one) => {
        const decision = iamDecider.decide(policy, one);
        return isRefusal(decision) ? policy : decision.reduce((state, event, revision) => iamDecider.evolve(state, event, envelopeAt(revision)), policy);
      }, start);
      expect(end.breaches.toJSON()).toEqual({});
      expect([...end.bindingsByPlace.values()].flatMap((ids) => ids.toArray()).sort()).toEqual(end.bindings.keySeq().toArray().sort());
      expect([...end.restrictionsByPlace.values()].flatMap((ids) => ids.toArray()).sort()).toEqual(end.restrictions.keySeq().toArray().sort());
    }),
    { ...run, numRuns: 300 },
  );
});
