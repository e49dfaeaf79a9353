/** Routes of signing in and out. (rest-contract 3.10, iam-auth-audit 1.4) */
import Type from 'typebox';
import { signInInput } from '../../sign-in/input.ts';
import type { SessionView, SignInService } from '../../sign-in/service.ts';
import type { Resource } from './resources.ts';
import { route } from './route.ts';

const tag = 'Authentication';
const closed = { additionalProperties: false } as const;
const authenticated = Type.Literal(true);

const signedIn: Resource<Awaited<ReturnType<SignInService['signIn']>>> = {
  schema: Type.Object({ authenticated }, { ...closed, title: 'SignedIn' }),
  present: () => ({ authenticated: true }),
};

const session: Resource<SessionView | null> = {
  schema: Type.Union(
    [
      Type.Object({ authenticated, sessionKey: Type.String({ pattern: '^[A-Za-z0-9_-]+$' }), user: Type.Object({ id: Type.String(), email: Type.String(), name: Type.String() }, closed) }, closed),
      Type.Null(),
    ],
    { title: 'Session' },
  ),
  present: (view) => view && { authenticated: true, sessionKey: view.sessionKey, user: { id: view.user.id, email: view.user.email, name: view.user.name } },
};

const signedOut: Resource<void> = { schema: Type.Object({ success: Type.Literal(true) }, { ...closed, title: 'SignedOut' }), present: () => ({ success: true }) };

const no = Type.Literal(false);
const providers: Resource<void> = {
  schema: Type.Object({ github: no, google: no, oidc: no, password: authenticated, sessionBinding: authenticated }, { ...closed, title: 'SignInProviders' }),
  present: () => ({ github: false, google: false, oidc: false, password: true, sessionBinding: true }),
};

export const signInRoutes = [
  route({
    method: 'POST',
    path: '/api/auth/sign-in/email',
    operationId: 'signInWithPassword',
    tag,
    summary: 'Begin a session with email and password',
    permissions: [],
    access: 'public',
    origin: 'sign-in',
    body: signInInput,
    status: 200,
    answer: signedIn,
    cookie: ({ token, lifetimeMs }) => ({ value: token, maxAgeSeconds: lifetimeMs / 1_000 }),
    alsoAnswers: [401, 429],
    handle: ({ signIn }, { caller, body }) => signIn.signIn(caller, body),
  }),
  route({
    method: 'GET',
    path: '/api/auth/session',
    operationId: 'getSession',
    tag,
    summary: 'Read the session of the cookie; null for nobody',
    permissions: [],
    access: 'public',
    status: 200,
    answer: session,
    alsoAnswers: [401],
    handle: ({ signIn }, { caller }) => signIn.session(caller),
  }),
  route({
    method: 'POST',
    path: '/api/auth/sign-out',
    operationId: 'signOut',
    tag,
    summary: 'End the session',
    permissions: [],
    access: 'human',
    body: Type.Object({}, closed),
    bodyOptional: true,
    status: 200,
    answer: signedOut,
    cookie: () => ({ value: '', maxAgeSeconds: 0 }),
    handle: ({ signIn }, { caller }) => signIn.signOut(caller),
  }),
  route({
    method: 'GET',
    path: '/api/auth/providers',
    operationId: 'listSignInProviders',
    tag,
    summary: 'Which ways there are to sign in',
    permissions: [],
    access: 'public',
    status: 200,
    answer: providers,
    handle: async () => undefined,
  }),
];
