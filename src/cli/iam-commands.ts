/** The words of `exuvia iam` and `exuvia key`; what they do is loaded when one is used. */
import { Option, type Command } from 'commander';
import type * as Actions from './iam.ts';
import { daysNamed, idOf, keyNameNamed, nameNamed, permissionNamed, permissionsNamed, targetNamed } from './iam-terms.ts';

const principal = idOf('prn', 'spn');
const namespaceOption = (): Option => new Option('--namespace <id>', 'in one Namespace; without it in the whole Installation').argParser(idOf('ns'));
const onOption = (): Option => new Option('--on <kind:id>', 'on one resource, for example agent:agt_…; without it on everything there').argParser(targetNamed);
const forceOption = (): Option => new Option('--force', 'even if nobody who can come in would hold installation:administer any more');

/** Adds the commands of the operator's policy to the command line. */
export const addIamCommands = (program: Command, orOneSentence: (run: () => Promise<void>) => Promise<void>): void => {
  const command = (under: Command, usage: string, description: string): Command => under.command(usage).description(description).option('--json', 'answer in JSON');
  const run = <A extends readonly unknown[]>(act: (actions: typeof Actions, ...values: A) => Promise<void>) =>
    (...values: unknown[]): Promise<void> => orOneSentence(async () => act(await import('./iam.ts'), ...(values as unknown as A)));

  const policy = program.command('iam').description('who may do what, beside a running server or without one');
  command(policy, 'list', 'principals, Groups, Roles, bindings, Restrictions and keys').addOption(namespaceOption()).action(run((actions, options: never) => actions.list(options)));
  command(policy, 'principals', 'everybody who can be granted something').addOption(namespaceOption()).action(run((actions, options: never) => actions.principals(options)));

  const principals = policy.command('principal').description('service principals');
  command(principals, 'create', 'make a service principal; it may do nothing yet').addOption(namespaceOption()).action(run((actions, options: never) => actions.createPrincipal(options)));

  const roles = policy.command('role').description('Roles: sets of permissions, to be bound');
  command(roles, 'create', 'make a Role')
    .argument('<permissions...>', 'written kind:action, for example agent:create agent:read', permissionsNamed)
    .option('--name <name>', 'what it is called', nameNamed)
    .addOption(namespaceOption())
    .action(run((actions, permissions: never, options: never) => actions.createRole(permissions, options)));
  command(roles, 'delete', 'delete a Role that nothing binds').argument('<role>', 'its id', idOf('role')).action(run((actions, role: string, options: never) => actions.deleteRole(role, options)));

  command(policy, 'bind', 'grant a Role')
    .argument('<subject>', 'a principal or a Group', idOf('prn', 'spn', 'grp'))
    .argument('<role>', 'a Role', idOf('role'))
    .addOption(namespaceOption())
    .addOption(onOption())
    .action(run((actions, subject: string, role: string, options: never) => actions.bind(subject, role, options)));
  command(policy, 'unbind', 'take a grant away')
    .argument('<binding>', 'its id', idOf('bnd'))
    .addOption(forceOption())
    .action(run((actions, binding: string, options: never) => actions.unbind(binding, options)));

  command(policy, 'restrict', 'deny a permission to everybody, administrators included')
    .argument('<permission>', 'written kind:action', permissionNamed)
    .addOption(namespaceOption())
    .addOption(onOption())
    .addOption(forceOption())
    .action(run((actions, permission: never, options: never) => actions.restrict(permission, options)));
  command(policy, 'unrestrict', 'delete a Restriction').argument('<restriction>', 'its id', idOf('rst')).action(run((actions, restriction: string, options: never) => actions.unrestrict(restriction, options)));

  const groups = policy.command('group').description('Groups of humans, bound as one');
  const group = idOf('grp');
  command(groups, 'create', 'make a Group').argument('<name>', 'what it is called', nameNamed).addOption(namespaceOption()).action(run((actions, name: string, options: never) => actions.createGroup(name, options)));
  command(groups, 'delete', 'delete a Group that nothing binds, and its memberships').argument('<group>', 'its id', group).action(run((actions, id: string, options: never) => actions.deleteGroup(id, options)));
  command(groups, 'add', 'make a human a member')
    .argument('<group>', 'its id', group)
    .argument('<principal>', 'a human', idOf('prn'))
    .action(run((actions, id: string, member: string, options: never) => actions.addMember(id, member, options)));
  command(groups, 'remove', 'end a membership')
    .argument('<group>', 'its id', group)
    .argument('<principal>', 'a human', idOf('prn'))
    .addOption(forceOption())
    .action(run((actions, id: string, member: string, options: never) => actions.removeMember(id, member, options)));

  command(policy, 'auditor', 'let somebody read the audit record')
    .argument('<principal>', 'a principal', principal)
    .addOption(namespaceOption())
    .action(run((actions, subject: string, options: never) => actions.makeAuditor(subject, options)));

  const keys = program.command('key').description('service keys');
  command(keys, 'issue', 'issue a key: shown once, or written to a new file that its owner alone may read')
    .argument('[principal]', 'the service principal whose key it is', idOf('spn'))
    .option('--admin', 'for a new service principal that may do everything')
    .addOption(new Option('--name <name>', 'what it is called').default('operator').argParser(keyNameNamed))
    .addOption(new Option('--days <days>', 'how long it lives').default(30).argParser(daysNamed))
    .option('--file <path>', 'where to write it instead of showing it')
    .action(run((actions, subject: never, options: never) => actions.issueKey(subject, options)));
  command(keys, 'revoke', 'end a key').argument('<key>', 'its id', idOf('key')).addOption(forceOption()).action(run((actions, key: string, options: never) => actions.revokeKey(key, options)));
};
