/**
 * Event definitions and the codec made of them. Each event splits into a skeleton (ids, numbers, state
 * changes; must be readable) and settings (may turn out unreadable, which never prevents stop, delete or
 * retirement). Old shapes are lifted on reading, never rewritten. (architecture section 3, failure scenario 18)
 */
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import { canonicalText } from './canonical.ts';
import type { Message } from './decider.ts';
import { Fault } from './errors.ts';
import type { Envelope, EventBytes, Metadata } from './event.ts';
import { validator } from './parse.ts';

/** Settings that no longer decode; `field` names the member at fault. Shown as `configurationReadError`. */
export interface Unreadable {
  readonly unreadable: string;
}

export const isUnreadable = (settings: object): settings is Unreadable => 'unreadable' in settings;

/** An older shape and how its data becomes the next one's. */
export interface OlderShape {
  readonly shape: TSchema;
  readonly lift: (old: never) => object;
}

export interface EventDefinition<T extends string = string, K extends TSchema = TSchema, S extends TObject | undefined = TObject | undefined> {
  readonly type: T;
  /** Schema number written by this build. */
  readonly schema: number;
  readonly skeleton: K;
  readonly settings: S;
  /** Shapes by schema number, for reading; lifted one number at a time. */
  readonly older: Readonly<Record<number, OlderShape>>;
  /** Members of the data an auditor may see in the event history; everything else stays inside. */
  readonly view: readonly string[];
}

/** Defines an event: its stored shape and its allow-listed public view. */
export const defineEvent = <T extends string, P extends TProperties, S extends TObject | undefined = undefined>(
  type: T,
  definition: {
    readonly skeleton: TObject<P>;
    readonly settings?: S;
    readonly view: readonly ((keyof P & string) | 'settings')[];
    readonly schema?: number;
    readonly older?: Readonly<Record<number, OlderShape>>;
  },
): EventDefinition<T, TObject<P>, S> => ({
  type,
  schema: definition.schema ?? 1,
  skeleton: definition.skeleton,
  settings: definition.settings as S,
  older: definition.older ?? {},
  view: definition.view,
});

type DataOf<D> =
  D extends EventDefinition<string, infer K, infer S>
    ? S extends TObject
      ? Static<K> & { readonly settings: Static<S> | Unreadable }
      : Static<K>
    : never;

/** The message an event definition stands for. */
export type EventOf<D> = D extends EventDefinition<infer T, TSchema, TObject | undefined> ? Message<T, DataOf<D> & object> : never;

/** A stored event this build cannot read. */
export class Undecodable extends Fault {}

export interface Decoded<E extends Message = Message> {
  readonly event: E;
  readonly envelope: Envelope;
}

export interface Codec<E extends Message = Message> {
  readonly definitions: ReadonlyMap<string, EventDefinition>;
  encode(event: E): { readonly type: string; readonly schema: number; readonly data: string };
  /** @throws Undecodable for an unknown type, a newer schema, or a skeleton that does not fit */
  decode(stored: EventBytes & { readonly stream: string; readonly revision: number }): Decoded<E>;
}

const skeletonOf = (data: object): object => {
  if (!('settings' in data)) return data;
  const { settings: _, ...skeleton } = data;
  return skeleton;
};

const readSettings = (schema: TObject, settings: unknown): object => {
  const validate = validator(schema);
  if (validate(settings)) return settings as object;
  const error = validate.errors?.[0];
  const at = error?.instancePath.split('/')[1] ?? '';
  const named = at === '' ? ((error?.params as { missingProperty?: string } | undefined)?.missingProperty ?? 'configuration') : at;
  return { unreadable: named };
};

/** A codec over a closed set of event definitions. */
export const createCodec = <const D extends readonly EventDefinition[]>(...list: D): Codec<EventOf<D[number]>> => {
  const definitions = new Map<string, EventDefinition>(list.map((definition) => [definition.type, definition]));
  const definitionOf = (type: string): EventDefinition => {
    const definition = definitions.get(type);
    if (definition === undefined) throw new Undecodable(`Unknown event type ${type}`);
    return definition;
  };
  return {
    definitions,
    encode: ({ type, data }) => {
      const definition = definitionOf(type);
      if (!validator(definition.skeleton)(skeletonOf(data))) throw new Fault(`Event ${type} does not fit its own schema`);
      return { type, schema: definition.schema, data: canonicalText(data) };
    },
    decode: (stored) => {
      const at = `${stored.type} at ${stored.stream}@${stored.revision}`;
      const definition = definitionOf(stored.type);
      const metadata = JSON.parse(stored.metadata) as Metadata;
      if (metadata.schema > definition.schema) throw new Undecodable(`Schema ${metadata.schema} of ${at} is newer than this build`);
      let data = JSON.parse(stored.data) as object;
      for (let number = metadata.schema; number < definition.schema; number++) {
        const older = definition.older[number];
        if (older === undefined || !validator(older.shape)(data)) throw new Undecodable(`Schema ${number} of ${at} cannot be read`);
        data = older.lift(data as never);
      }
      if (!validator(definition.skeleton)(skeletonOf(data))) throw new Undecodable(`The skeleton of ${at} cannot be read`);
      if (definition.settings !== undefined) data = { ...data, settings: readSettings(definition.settings, (data as { settings?: unknown }).settings) };
      const envelope = { ...metadata, id: stored.id, stream: stored.stream, revision: stored.revision };
      return { event: { type: stored.type, data } as unknown as EventOf<D[number]>, envelope };
    },
  };
};

/** The part of an event's data an auditor may see. */
export const publicView = (definition: EventDefinition, data: object): Readonly<Record<string, unknown>> =>
  Object.fromEntries(definition.view.flatMap((name) => (name in data ? [[name, (data as Record<string, unknown>)[name]]] : [])));
