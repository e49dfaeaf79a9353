/** Random GraphQL requests, made from the schema: valid operations with aliases and variables, and documents with something wrong in them. */
import {
  getNamedType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isUnionType,
  type GraphQLArgument,
  type GraphQLInputType,
  type GraphQLNamedOutputType,
  type GraphQLObjectType,
} from 'graphql';
import { schema } from '../../schema/index.ts';
import type { Random } from './random.ts';
import { brokenBody, credentialOf, headersOf, type FuzzRequest } from './rest-requests.ts';
import { junkTexts, spoiled, valueOf } from './values.ts';
import type { World } from './world.ts';

const deepest = 5;
const kinds: readonly (readonly [RegExp, prefix: string, typename: string])[] = [
  [/revision|deployment/i, 'rev', 'AgentRevision'],
  [/agent/i, 'agt', 'Agent'],
  [/configuration/i, 'cfg', 'Configuration'],
  [/namespace/i, 'ns', 'Namespace'],
];

const globalId = (random: Random, world: World): string => {
  const [, prefix, typename] = random.pick(kinds);
  const id = random.early(world.ids(prefix));
  return Buffer.from(`${typename}:${random.chance(0.5) ? id : `${random.early(world.ids('ns'))}/${id}`}`).toString('base64');
};

/** An id for an argument or member of this name, below a field of that name. */
const idOf = (random: Random, name: string, field: string, world: World): string => {
  if (random.chance(0.1)) return random.pick([globalId(random, world), random.pick(junkTexts), random.early(world.ids('spn'))]);
  const kind = kinds.find(([pattern]) => pattern.test(name)) ?? kinds.find(([pattern]) => pattern.test(field));
  return kind === undefined ? globalId(random, world) : random.early(world.ids(kind[1]));
};

const inputOf = (random: Random, type: GraphQLInputType, name: string, field: string, world: World): unknown => {
  if (isNonNullType(type)) return inputOf(random, type.ofType, name, field, world);
  if (random.chance(0.03)) return null;
  if (isListType(type)) return Array.from({ length: 1 + random.below(3) }, () => inputOf(random, type.ofType, name, field, world));
  if (isEnumType(type)) return random.pick(type.getValues()).name;
  if (isInputObjectType(type))
    return Object.fromEntries(
      Object.values(type.getFields())
        .filter((member) => isNonNullType(member.type) || random.chance(0.3))
        .map((member) => [member.name, inputOf(random, member.type, member.name, field, world)]),
    );
  switch (type.name) {
    case 'ID':
      return idOf(random, name, field, world);
    case 'Int':
      return random.pick([0, 1, 2, 50, 100, -1, 101, 2_147_483_647]);
    case 'Boolean':
      return random.chance(0.5);
    case 'String':
      return valueOf(random, { type: 'string' }, world);
    default:
      return random.pick<unknown>([{ method: 'runtime' }, {}, null, { env: { A: 'b' } }, { 'search@1': { enabled: true } }, [], 7, { source: { kind: 'secret', namespaceId: random.early(world.ids('ns')), id: 'sec_1' } }]);
  }
};

interface Variables {
  readonly declared: string[];
  readonly values: Record<string, unknown>;
}

const argumentsOf = (random: Random, args: readonly GraphQLArgument[], field: string, world: World, variables: Variables): string => {
  const given = args
    .filter(({ type }) => isNonNullType(type) || random.chance(0.4))
    .map(({ name, type }) => {
      const value = inputOf(random, type, name, field, world);
      const named = getNamedType(type);
      const literal = isLeafType(named) && !isEnumType(named) && random.chance(0.4);
      if (literal) return `${name}: ${JSON.stringify(value)}`;
      const variable = `v${variables.declared.length}`;
      variables.declared.push(`$${variable}: ${String(type)}`);
      variables.values[variable] = value;
      return `${name}: $${variable}`;
    });
  return given.length === 0 ? '' : `(${given.join(', ')})`;
};

/** What every document asks of a refusal, so that it can be judged. */
const refusal = '{ __typename code message status requestId details { path code } }';

const selectionOf = (random: Random, type: GraphQLNamedOutputType, depth: number, world: World, variables: Variables): string => {
  if (isLeafType(type)) return '';
  if (type.name === 'Refusal') return refusal;
  if (isAbstractType(type)) {
    const members = schema.getPossibleTypes(type).filter(() => isUnionType(type) || random.chance(0.5));
    return `{ __typename ${members.map((member) => `... on ${member.name} ${selectionOf(random, member, depth, world, variables)}`).join(' ')} }`;
  }
  const fields = Object.values((type as GraphQLObjectType).getFields()).filter((field) => depth < deepest || isLeafType(getNamedType(field.type)));
  const chosen = fields.filter(() => random.chance(Math.min(1, 4 / fields.length)));
  const selected = chosen.map(({ name, type: result, args }) => {
    const alias = random.chance(0.1) ? `${random.pick(['a', 'b', 'c'])}${random.below(100)}: ` : '';
    const directive = random.chance(0.03) ? random.pick([' @skip(if: true)', ' @include(if: true)', ' @include(if: false)']) : '';
    return `${alias}${name}${argumentsOf(random, args, type.name, world, variables)}${directive} ${selectionOf(random, getNamedType(result), depth + 1, world, variables)}`;
  });
  return `{ __typename ${selected.join(' ')} }`;
};

const roots = { query: schema.getQueryType()!, mutation: schema.getMutationType()!, subscription: schema.getSubscriptionType()! };

const operationOf = (random: Random, world: World) => {
  const kind = random.weighted([
    [12, 'query'],
    [7, 'mutation'],
    [1, 'subscription'],
  ] as const);
  const variables: Variables = { declared: [], values: {} };
  const fields = Object.values(roots[kind].getFields());
  const count = kind === 'subscription' ? 1 : 1 + random.below(random.below(4) + 1);
  const selected = Array.from({ length: count }, (_, index) => {
    const field = random.pick(fields);
    return `${count === 1 ? '' : `f${index}: `}${field.name}${argumentsOf(random, field.args, field.name, world, variables)} ${selectionOf(random, getNamedType(field.type), 1, world, variables)}`;
  });
  const declared = variables.declared.length === 0 ? '' : `(${variables.declared.join(', ')})`;
  return { kind, query: `${kind}${declared} { ${selected.join(' ')} }`, variables: variables.values };
};

const oddDocuments: readonly string[] = [
  '',
  '{',
  '{}',
  'query',
  '#',
  '{ lobster }',
  '{ __schema { types { name fields { name type { name ofType { name } } } } } }',
  '{ __type(name: "Agent") { name } }',
  '{ ...F } fragment F on Query { ...F }',
  '{ ...F } fragment F on Query { ...G } fragment G on Query { ...F }',
  'query a { __typename } query b { __typename }',
  'subscription { __typename }',
  'subscription { a: deploymentChanged(id: "a") { status } b: deploymentChanged(id: "b") { status } }',
  'query($a: Int = 1, $a: Int) { __typename }',
  'query($a: Agent) { __typename }',
  '{ __typename @skip }',
  '{ __typename @defer }',
  `{ ${Array.from({ length: 500 }, (_, index) => `a${index}: __typename`).join(' ')} }`,
  `{ ${Array.from({ length: 60 }, (_, index) => `a${index}: installation { name }`).join(' ')} }`,
  `${'{ node(id: "a") { ... on Agent '.repeat(200)}{ id }${' } }'.repeat(200)}`,
  `{ namespaces { nodes ${'{ agents { nodes { namespace '.repeat(12)}{ name }${' } } }'.repeat(12)} } }`,
  '{'.repeat(20_000),
  `{ namespace(id: ${'['.repeat(5_000)}) { name } }`,
  `{ namespace(id: "${'x'.repeat(100_000)}") { name } }`,
  'type Query { a: Int }',
  'extend schema { query: Query }',
];

/** The document with a piece missing or too much, but for what it asks of refusals. */
const cut = (random: Random, text: string): string => {
  const spoilt = cutAnywhere(random, text);
  return spoilt.split(refusal).length === text.split(refusal).length ? spoilt : text;
};

const cutAnywhere = (random: Random, text: string): string => {
  const [from, to] = [random.below(text.length), random.below(text.length)].toSorted((a, b) => a - b) as [number, number];
  return random.chance(0.5) ? text.slice(0, from) + text.slice(Math.min(to, from + 12)) : text.slice(0, from) + random.pick(['{', '}', '(', '"', '$', '...', '\u0000', '! ', '@skip(if: $x)', '\\u{d800}']) + text.slice(from);
};

const bodyOf = (random: Random, world: World): Buffer => {
  if (random.chance(0.04)) return brokenBody(random);
  if (random.chance(0.08)) return Buffer.from(JSON.stringify({ query: random.pick(oddDocuments) }));
  const { query, variables } = operationOf(random, world);
  const operation: Readonly<Record<string, unknown>> = {
    query: random.chance(0.1) ? cut(random, query) : query,
    variables: random.chance(0.15) ? spoiled(random, variables) : variables,
    ...(random.chance(0.04) && { operationName: random.pick(['', 'a', null, 7]) }),
    ...(random.chance(0.03) && { extensions: random.pick<unknown>([{}, null, { persistedQuery: { version: 1, sha256Hash: 'a' } }, 'x']) }),
  };
  return Buffer.from(JSON.stringify(random.chance(0.03) ? spoiled(random, operation) : operation) ?? '');
};

const isSubscription = (body: Buffer): boolean => /"query":"subscription/.test(body.subarray(0, 40).toString());

export const graphqlRequest = (random: Random, world: World): FuzzRequest => {
  const body = bodyOf(random, world);
  return {
    credential: credentialOf(random, world),
    method: random.chance(0.03) ? random.pick(['GET', 'PUT', 'HEAD', 'OPTIONS', 'DELETE']) : 'POST',
    target: random.chance(0.03) ? '/graphql?query=%7B__typename%7D' : '/graphql',
    headers: [
      ...(random.chance(0.03) ? [] : [['content-type', 'application/json'] as const]),
      ...(isSubscription(body) && random.chance(0.8) ? [['accept', 'text/event-stream'] as const] : []),
      ...headersOf(random),
    ],
    body,
  };
};
