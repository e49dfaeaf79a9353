/** Routes of accounts: one can be created, and what needs external sign-in says so. (rest-contract 3.10, iam-auth-audit 1.8) */
import Type from 'typebox';
import type { AccountView } from '../../sign-in/account-service.ts';
import { createAccountInput } from '../../sign-in/input.ts';
import type { Resource } from './resources.ts';
import { route } from './route.ts';

const permissions = [{ action: 'administer', resourceKind: 'installation', scope: 'installation' }] as const;
const administration = { tag: 'Accounts', permissions, access: 'human', origin: 'exact' } as const;

const opaque = Type.String({ minLength: 1, maxLength: 200 });
const account: Resource<AccountView> = {
  schema: Type.Object({ id: opaque, email: Type.String(), name: Type.String(), principalId: opaque }, { additionalProperties: false, title: 'Account' }),
  present: ({ id, email, name, principalId }) => ({ id, email, name, principalId }),
};

const read = (path: string, operationId: string, summary: string, verb: string) =>
  route({ ...administration, method: 'GET', path, operationId, summary, status: 200, answer: account, alsoAnswers: [409], handle: ({ accounts }, { caller }) => accounts.control(caller, verb) });

/** Whatever the body of an external sign-in's control holds, it is refused for the same reason. */
const control = (path: string, operationId: string, summary: string, verb: string) =>
  route({ ...administration, method: 'POST', path, operationId, summary, body: Type.Object({}), bodyOptional: true, status: 200, answer: account, handle: ({ accounts }, { caller, body }) => accounts.control(caller, verb, body) });

const one = '/api/auth/accounts/:userId';

export const accountRoutes = [
  route({
    ...administration,
    method: 'POST',
    path: '/api/auth/accounts',
    operationId: 'createAccount',
    summary: 'Create an account, its Principal and, with a Role of the Installation, its binding',
    body: createAccountInput,
    bodyUnread: true,
    status: 201,
    answer: account,
    handle: ({ accounts }, { caller, body }) => accounts.create(caller, body),
  }),
  read(one, 'getAccount', 'Read an account', 'read'),
  control(`${one}/disable`, 'disableAccount', 'Disable an account', 'disable'),
  control(`${one}/enable`, 'enableAccount', 'Enable an account', 'enable'),
  control(`${one}/enrol`, 'enrolAccount', 'Enrol an account for external sign-in', 'enrol'),
  control(`${one}/revoke`, 'revokeAccountSessions', 'End the sessions of an account', 'revoke'),
  control(`${one}/methods/:methodId/detach`, 'detachAccountMethod', 'Detach a way to sign in', 'detach'),
  ...(['github', 'google', 'oidc'] as const).map((provider) => control(`${one}/providers/${provider}`, `attachAccount${provider.charAt(0).toUpperCase()}${provider.slice(1)}`, `Attach ${provider} sign-in`, 'attach')),
  read('/api/auth/recovery', 'getRecovery', 'Read who recovers the Installation', 'recovery.read'),
  control('/api/auth/recovery', 'designateRecovery', 'Designate who recovers the Installation', 'recovery.designate'),
];
