/** Input schemas of sign-in and accounts. (rest-contract 3.10) */
import Type, { type Static } from 'typebox';
import { emailForm } from '../kernel/email.ts';

const closed = { additionalProperties: false } as const;
const email = Type.String({ minLength: 3, maxLength: 320 });
const password = Type.String({ minLength: 12, maxLength: 128 });

export const signInInput = Type.Object({ email, password }, closed);
export type SignInInput = Static<typeof signInInput>;

export const createAccountInput = Type.Object(
  {
    email: Type.String(emailForm),
    password,
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    roleId: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    github: Type.Optional(Type.Object({ subject: Type.String({ pattern: '^[1-9][0-9]{0,19}$' }) }, closed)),
  },
  closed,
);
export type CreateAccountInput = Static<typeof createAccountInput>;
