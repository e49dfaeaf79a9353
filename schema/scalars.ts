/** The scalars beyond GraphQL's own. */
import { GraphQLError, valueFromASTUntyped } from 'graphql';
import type { Json } from '../src/kernel/canonical.ts';
import { builder } from './builder.ts';

builder.scalarType('JSON', {
  description: 'Any JSON value. `null` and an absent value differ, as they do in the REST routes.',
  serialize: (value) => value,
  parseValue: (value) => value,
  parseLiteral: (literal, variables) => valueFromASTUntyped(literal, variables) as Json,
});

builder.scalarType('Timestamp', {
  description: 'UTC with exactly three fractional digits, for example `2026-01-31T08:00:00.000Z`.',
  serialize: String,
  parseValue: (value) => {
    if (typeof value !== 'string') throw new GraphQLError('Timestamp cannot represent a non string value');
    return value;
  },
});
