/** What one GraphQL operation may ask for, judged before anything of it is resolved. (architecture section 7, iam-auth-audit 8.4) */
import { getNamedType, getOperationAST, GraphQLError, isInterfaceType, isObjectType, Kind, Lexer, parse, Source, TokenKind, type DocumentNode, type ExecutionArgs, type ExecutionResult, type FieldNode, type GraphQLField, type GraphQLNamedType, type OperationDefinitionNode, type SelectionSetNode, type ValueNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { largestPage, pageSize } from '../../schema/connection.ts';
import { Refusal } from '../kernel/errors.ts';

/** A page of 100 Agents with 20 revisions each, and their deployments, is within them; so is introspection. */
export const limits = {
  /** Lexical tokens of a document; beyond them parsing stops. */
  tokens: 2_000,
  /** Brackets inside brackets of a document: the parser recurses as deep as they nest. */
  nesting: 128,
  /** Fields inside fields. */
  depth: 20,
  /** Fields under another name, each counted where a fragment brings it in. */
  aliases: 30,
  /** Objects the answer may hold: a connection counts as many as its page may have. */
  cost: 20_000,
} as const;

interface Measured {
  readonly depth: number;
  readonly aliases: number;
  readonly cost: number;
}

const nothing: Measured = { depth: 0, aliases: 0, cost: 0 };

const fieldOf = (type: GraphQLNamedType | undefined, name: string): GraphQLField<unknown, unknown> | undefined =>
  isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;

/** Measures a valid operation; a fragment is measured once for each size of page it is spread in, however often. */
const measure = ({ schema, document, variableValues }: Pick<ExecutionArgs, 'schema' | 'document' | 'variableValues'>, operation: OperationDefinitionNode): Measured => {
  const fragments = new Map(document.definitions.flatMap((definition) => (definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [])));
  const spread = new Map<string, Measured>();

  const resolved = (value: ValueNode | undefined): unknown => {
    if (value?.kind !== Kind.VARIABLE) return value;
    const name = value.name.value;
    // A default stands for what was not sent, and not for a null that was.
    if (variableValues != null && Object.hasOwn(variableValues, name)) return variableValues[name];
    return operation.variableDefinitions?.find(({ variable }) => variable.name.value === name)?.defaultValue;
  };
  const argument = ({ arguments: given }: FieldNode, name: string): unknown => resolved(given?.find((node) => node.name.value === name)?.value);
  /** Sizes beyond the largest page are refused where they are read. */
  const within = (size: number): number => Math.min(Math.max(Number.isFinite(size) ? size : pageSize, 1), largestPage);
  const numberOf = (value: unknown): number => {
    if (typeof value === 'object' && value !== null && 'value' in value) return Number(value.value);
    return typeof value === 'number' ? value : NaN;
  };
  const lengthOf = (value: unknown): number => {
    if (Array.isArray(value)) return value.length;
    return typeof value === 'object' && value !== null && 'values' in value && Array.isArray(value.values) ? value.values.length : 1;
  };

  /** How often the objects of a field occur: once, or as often as the page of its connection or the list of its ids has room for. */
  const timesOf = (node: FieldNode, field: GraphQLField<unknown, unknown> | undefined, page: number | undefined): number => {
    if (page !== undefined && (node.name.value === 'edges' || node.name.value === 'nodes')) return page;
    return field?.args.some(({ name }) => name === 'ids') === true ? within(lengthOf(argument(node, 'ids'))) : 1;
  };

  const ofField = (node: FieldNode, type: GraphQLNamedType | undefined, page: number | undefined): Measured => {
    const alias = node.alias === undefined ? 0 : 1;
    if (node.selectionSet === undefined) return { depth: 1, aliases: alias, cost: 0 };
    const field = fieldOf(type, node.name.value);
    const isConnection = field?.args.some(({ name }) => name === 'first') === true;
    const inner = ofSelections(node.selectionSet, field && getNamedType(field.type), isConnection ? within(numberOf(argument(node, 'first'))) : undefined);
    return { depth: 1 + inner.depth, aliases: alias + inner.aliases, cost: timesOf(node, field, page) * (1 + inner.cost) };
  };

  const ofFragment = (name: string, page: number | undefined): Measured => {
    const key = `${name} ${page ?? ''}`;
    const fragment = fragments.get(name);
    const known = spread.get(key) ?? (fragment === undefined ? nothing : ofSelections(fragment.selectionSet, schema.getType(fragment.typeCondition.name.value), page));
    spread.set(key, known);
    return known;
  };

  const ofSelections = ({ selections }: SelectionSetNode, type: GraphQLNamedType | undefined, page: number | undefined): Measured => {
    let sum = nothing;
    for (const node of selections) {
      const one =
        node.kind === Kind.FIELD
          ? ofField(node, type, page)
          : node.kind === Kind.FRAGMENT_SPREAD
            ? ofFragment(node.name.value, page)
            : ofSelections(node.selectionSet, node.typeCondition === undefined ? type : schema.getType(node.typeCondition.name.value), page);
      sum = { depth: Math.max(sum.depth, one.depth), aliases: sum.aliases + one.aliases, cost: sum.cost + one.cost };
    }
    return sum;
  };

  return ofSelections(operation.selectionSet, schema.getRootType(operation.operation) ?? undefined, undefined);
};

/** The first limit an operation passes, as a refusal that names it and what was found. */
const refusalOf = ({ depth, aliases, cost }: Measured): Refusal | undefined => {
  const passed = [
    [depth > limits.depth, `The operation is nested ${depth} levels deep; the limit is ${limits.depth}`],
    [aliases > limits.aliases, `The operation has ${aliases} aliases; the limit is ${limits.aliases}`],
    [cost > limits.cost, `The operation asks for up to ${cost} objects; the limit is ${limits.cost}`],
  ] as const;
  const message = passed.find(([is]) => is)?.[1];
  return message === undefined ? undefined : new Refusal('INVALID_REQUEST', message);
};

const judge = (args: { readonly schema: ExecutionArgs['schema']; readonly document: DocumentNode; readonly variableValues?: ExecutionArgs['variableValues']; readonly operationName?: string | null | undefined }): ExecutionResult | undefined => {
  const operation = getOperationAST(args.document, args.operationName);
  const refusal = operation == null ? undefined : refusalOf(measure(args, operation));
  return refusal && { errors: [new GraphQLError(refusal.message, { originalError: refusal })] };
};

const opening: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const closing: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/** Parses what is neither too long nor nested too deep. */
const parseWithin = (text: string, options?: object): DocumentNode => {
  const lexer = new Lexer(new Source(text));
  let depth = 0;
  for (let count = 0; count <= limits.tokens && lexer.advance().kind !== TokenKind.EOF; count++) {
    if (opening.has(lexer.token.kind)) depth += 1;
    else if (closing.has(lexer.token.kind)) depth -= 1;
    if (depth > limits.nesting) throw new GraphQLError(`The document is nested too deep; the limit is ${limits.nesting} brackets`);
  }
  return parse(text, { ...options, maxTokens: limits.tokens });
};

/** Refuses operations beyond the {@link limits}. Cycles of fragments never come so far: validation refuses them. */
export const useLimits = (): Plugin => ({
  onParse: ({ setParseFn }) => setParseFn(parseWithin),
  onExecute: ({ args, setResultAndStopExecution }) => {
    const refused = judge(args);
    if (refused !== undefined) setResultAndStopExecution(refused);
  },
  onSubscribe: ({ args, setResultAndStopExecution }) => {
    const refused = judge(args);
    if (refused !== undefined) setResultAndStopExecution(refused);
  },
});
