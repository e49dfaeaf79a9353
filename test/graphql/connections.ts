/** Every connection of the schema, found by walking it, and how a page of its parents is asked for. */
import { getNamedType, isObjectType, type GraphQLObjectType } from 'graphql';
import { schema } from '../../schema/index.ts';

export interface ConnectionField {
  /** The type that holds it; `Query` for one at the root. */
  readonly parent: string;
  readonly field: string;
}

/** Whatever is cut into pages takes the size of a page. */
export const connections: readonly ConnectionField[] = Object.values(schema.getTypeMap())
  .filter(isObjectType)
  .flatMap((type) =>
    Object.values(type.getFields())
      .filter(({ args, type: result }) => args.some(({ name }) => name === 'first') || getNamedType(result).name.endsWith('Connection'))
      .map(({ name }) => ({ parent: type.name, field: name })),
  )
  .sort((one, other) => `${one.parent}.${one.field}`.localeCompare(`${other.parent}.${other.field}`));

/** Every single object that hangs on a type. */
export const singlesOf = (parent: string): readonly string[] =>
  Object.values((schema.getType(parent) as GraphQLObjectType).getFields())
    .filter(({ name, type }) => isObjectType(getNamedType(type)) && !connections.some((connection) => connection.parent === parent && connection.field === name))
    .map(({ name }) => name);

const pages: Readonly<Record<string, (inner: string) => string>> = {
  Query: (inner) => inner,
  Namespace: (inner) => `namespaces(first: $parents) { nodes { namespaceId ${inner} } }`,
  Agent: (inner) => `namespace(id: $namespace) { agents(first: $parents) { nodes { agentId ${inner} } } }`,
};

/** A query for a page of the parents of a connection, each with a page of its own: `$parents` of them in `$namespace`, and `$first` and `$after` below each. */
export const queryOf = ({ parent, field }: ConnectionField): string => {
  const page = pages[parent];
  if (page === undefined) throw new Error(`Say how a page of ${parent} is asked for: its ${field} is not tested`);
  const asked = page(`${field}(first: $first, after: $after) { edges { cursor } nodes { __typename } pageInfo { hasNextPage } }`);
  const used = Object.entries({ parents: 'Int', namespace: 'ID!', first: 'Int', after: 'String' }).filter(([name]) => asked.includes(`$${name}`));
  return `query (${used.map(([name, type]) => `$${name}: ${type}`).join(', ')}) { ${asked} }`;
};

interface ConnectionAnswer {
  readonly edges: readonly { readonly cursor: string }[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

/** What a query of {@link queryOf} answered for the connection, parent by parent; null where it was refused. */
export const answersOf = ({ parent, field }: ConnectionField, data: unknown): readonly (ConnectionAnswer | null)[] => {
  type Parents = { readonly nodes: readonly Readonly<Record<string, ConnectionAnswer | null>>[] };
  const answer = data as { readonly namespaces: Parents; readonly namespace: { readonly agents: Parents } } & Readonly<Record<string, ConnectionAnswer | null>>;
  if (parent === 'Query') return [answer[field]!];
  return (parent === 'Agent' ? answer.namespace.agents : answer.namespaces).nodes.map((node) => node[field]!);
};
