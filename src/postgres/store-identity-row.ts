/** The row in which a database remembers the event store it has followed. (failure scenarios 5 and 9) */
import type { ClientBase, Pool } from 'pg';
import type { Position } from '../event-store/event-store.ts';
import type { StoreIdentityRow } from '../store-identity/recognition.ts';

export const createStoreIdentityRow = (pool: Pool): StoreIdentityRow => ({
  read: async () => {
    const { rows } = await pool.query<{ store_id: string | null; opened: number; compared: string | null; current: string; position: Position | null; event_id: string }>(
      `select identity.store_id, identity.opened, identity.incarnation as compared, the_one.current, place.position, place.event_id
         from (values (true, database_incarnation())) as the_one (singleton, current) left join store_identity as identity using (singleton)
         left join (select distinct position, event_id from consumer_checkpoint where position is not null) as place on true`,
    );
    const { store_id, opened, compared, current } = rows[0]!;
    return {
      known: store_id === null ? undefined : { storeId: store_id, opened, incarnation: compared },
      incarnation: current,
      checkpoints: rows.flatMap(({ position, event_id }) => (position === null ? [] : [{ position, eventId: event_id }])),
    };
  },
  insert: async (storeId) => {
    await pool.query('insert into store_identity (store_id, opened, incarnation) values ($1, 0, database_incarnation()) on conflict do nothing', [storeId]);
  },
  open: async (number, incarnation) => {
    await pool.query('update store_identity set opened = greatest(opened, $1), incarnation = $2', [number, incarnation]);
  },
});

/** The Installation a database belongs to; undefined in a new one. */
export const findInstallation = async (client: Pick<ClientBase, 'query'>): Promise<string | undefined> =>
  (await client.query<{ id: string }>('select id from installation')).rows[0]?.id;

/** Makes a database follow a history from now on, whatever it followed before. Nobody stays signed in. */
export const adoptHistory = async (client: ClientBase, history: { readonly installationId: string; readonly storeId: string; readonly opened: number }): Promise<void> => {
  const { installationId, storeId, opened } = history;
  await client.query('delete from session');
  await client.query('insert into installation (id) values ($1) on conflict (singleton) do update set id = excluded.id', [installationId]);
  await client.query(
    `insert into store_identity (store_id, opened, incarnation) values ($1, $2, database_incarnation())
     on conflict (singleton) do update
       set store_id = excluded.store_id, opened = greatest(store_identity.opened, excluded.opened), incarnation = excluded.incarnation`,
    [storeId, opened],
  );
};
