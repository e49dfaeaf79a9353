/** A refusal of a whole GraphQL request: its only error, under the status it has on the REST routes. (iam-auth-audit 8.4) */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { refusalError } from '../../schema/refusal.ts';
import type { Refusal } from '../kernel/errors.ts';
import { refusalHeaders, write } from './answer.ts';
import { statusOf } from './errors.ts';

export const writeGraphqlRefusal = (response: ServerResponse, refusal: Refusal, requestId: string, more?: OutgoingHttpHeaders): void =>
  write(response, statusOf(refusal), requestId, JSON.stringify({ errors: [refusalError(refusal, requestId)] }), { ...refusalHeaders(refusal), ...more });
