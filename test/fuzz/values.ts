/** Random JSON: what a schema asks for, and what no schema asks for. */
import type { TSchema } from 'typebox';
import type { Random } from './random.ts';
import type { World } from './world.ts';

type Json = Readonly<Record<string, unknown>>;

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? { a: value } : [value];
  return value;
};

const unsafe = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":1}}') as unknown;

export const junkTexts: readonly string[] = ['', ' ', 'a', 'lobster', 'null', '-1', '%00', '../..', '\u0000', '\ud800', '\u2028', 'é'.repeat(130), 'x'.repeat(300), 'x'.repeat(20_000), "' or 1=1 --", '{{7*7}}', '<script>', 'constructor', '__proto__', 'ns_00000000-0000-4000-8000-000000000000'];
const junkValues: readonly unknown[] = [null, true, false, 0, -1, 1.5, 2 ** 53, 1e308, [], {}, [null], { a: 1 }, nested(3), nested(23), nested(30), nested(2_000), unsafe];

const junk = (random: Random): unknown => (random.chance(0.5) ? random.pick(junkTexts) : random.pick(junkValues));

/** Names come from a small set, so that most creations end as conflicts and the world stays small. */
const texts: readonly string[] = ['agent', 'a', 'b', 'triage', 'Mara', 'name', 'search@1', 'slack', 'a-b', 'https://example.org', 'a@example.org', 'b@example.org', 'c@example.org', 'd@example.org', '0'.repeat(64), 'an idempotency key', 'another idempotency key', 'correct horse battery', 'AGENTS.md', 'MY_TOKEN', 'é', '7'];

const fitting = new Map<string, readonly string[]>();

const textOf = (random: Random, { pattern, minLength = 0, maxLength = Infinity }: { pattern?: string; minLength?: number; maxLength?: number }, world: World): string => {
  const prefix = /^\^([a-z]+)_/.exec(pattern ?? '')?.[1];
  if (prefix !== undefined) return random.early(world.ids(prefix));
  const key = `${pattern} ${minLength} ${maxLength}`;
  let fit = fitting.get(key);
  if (fit === undefined) {
    const expression = new RegExp(pattern ?? '');
    fitting.set(key, (fit = texts.filter((text) => expression.test(text) && text.length >= minLength && text.length <= maxLength)));
  }
  return fit.length === 0 ? 'x'.repeat(Math.min(minLength, 200)) : random.pick(fit);
};

/** A value that this schema takes, or nearly so. */
export const valueOf = (random: Random, schema: TSchema, world: World): unknown => {
  const { anyOf, const: literal, enum: choices, type, items, properties, required, patternProperties, minimum = 0, maximum = minimum + 1_000_000 } = schema as {
    anyOf?: readonly TSchema[];
    const?: unknown;
    enum?: readonly unknown[];
    type?: string;
    items?: TSchema;
    properties?: Readonly<Record<string, TSchema>>;
    required?: readonly string[];
    patternProperties?: Readonly<Record<string, TSchema>>;
    minimum?: number;
    maximum?: number;
  };
  if (anyOf !== undefined) return valueOf(random, random.pick(anyOf), world);
  if (literal !== undefined) return literal;
  if (choices !== undefined) return random.pick(choices);
  switch (type) {
    case 'object': {
      const members = Object.entries(properties ?? {}).filter(([name]) => required?.includes(name) === true || random.chance(0.3));
      const more = Object.entries(patternProperties ?? {}).map(([pattern, member]) => [textOf(random, { pattern }, world), member] as const);
      const values = Object.fromEntries([...members, ...more].map(([name, member]) => [name, valueOf(random, member, world)]));
      return Object.keys(values).length === 0 && random.chance(0.5) ? { env: { A: 'b' }, list: [1, 2] } : values;
    }
    case 'array':
      return Array.from({ length: random.below(3) }, () => valueOf(random, items ?? {}, world));
    case 'string':
      return textOf(random, schema, world);
    case 'integer':
    case 'number':
      return minimum + random.below(maximum - minimum + 1);
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    default:
      return junk(random);
  }
};

/** The same value with something wrong in it, somewhere. */
export const spoiled = (random: Random, value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || random.chance(0.2)) return junk(random);
  if (Array.isArray(value)) return value.length === 0 || random.chance(0.5) ? [...(value as unknown[]), junk(random)] : value.map((item, index) => (index === 0 ? spoiled(random, item) : (item as unknown)));
  const members = Object.entries(value as Json);
  if (members.length === 0 || random.chance(0.25)) return { ...value, [random.pick(junkTexts.slice(0, 15))]: junk(random) };
  const [chosen] = random.pick(members);
  if (random.chance(0.25)) return Object.fromEntries(members.filter(([name]) => name !== chosen));
  return Object.fromEntries(members.map(([name, member]) => [name, name === chosen ? spoiled(random, member) : member]));
};
