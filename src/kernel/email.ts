/** The form of an email address: what an account is signed in with, and what tells one from a slip of the pen. (rest-contract 3.10) */

/** As a JSON Schema of a string has it. */
export const emailForm = { minLength: 3, maxLength: 320, pattern: '^[^\\s@]+@[^\\s@]+$' } as const;

const form = new RegExp(emailForm.pattern);

export const isEmail = (text: string): boolean => text.length >= emailForm.minLength && text.length <= emailForm.maxLength && form.test(text);
