/** A row of the decision table on its way over one edge: what happened before is arranged, then the request is sent. */
import { pageHeaders } from '../support/sign-in.ts';
import { send, type Answer, type EdgeName } from '../support/use-cases.ts';
import type { Fixture } from './fixture.ts';
import type { Row, Scene } from './rows.ts';

export interface Staged extends AsyncDisposable {
  readonly scene: Scene;
  /** Sends what the row asks. */
  ask(): Promise<Answer>;
}

/** Arranges a row; what it changed for its own sake is undone with it. */
export const stage = async (fixture: Fixture, row: Row, edge: EdgeName): Promise<Staged> => {
  const undone = new AsyncDisposableStack();
  const known = row.fresh === true ? await fixture.fresh() : fixture.names;
  const person = row.person === true && typeof row.by !== 'string' ? await fixture.person(known, row.by) : undefined;
  const actor = person !== undefined ? { id: person.id, key: '', revoke: () => Promise.reject(new Error('A person keeps their grants')) } : typeof row.by === 'string' ? fixture.administrator : await fixture.actor(known, row.by, row.within);
  const before: Scene = { fixture, edge, names: known, actor, defer: (undo) => undone.defer(async () => void (await undo())) };
  const scene = { ...before, names: (await row.given?.(before)) ?? known };
  const credentials = (await row.credentials?.(scene)) ?? (person && pageHeaders(person.cookie)) ?? (row.by === 'nobody' ? {} : { 'x-api-key': actor.key, ...row.headers });
  return {
    scene,
    ask: () => send(edge, fixture.application.origin, row.asks(scene.names, scene), credentials),
    [Symbol.asyncDispose]: () => undone.disposeAsync(),
  };
};
