/** An event store whose appends are measured. */
import { WrongExpectedRevision, type EventStore } from '../event-store/event-store.ts';
import type { Metrics } from './metrics.ts';

export const measured = (store: EventStore, metrics: Pick<Metrics, 'appended' | 'versionConflict'>): EventStore => ({
  ...store,
  append: async (stream, expectedRevision, events) => {
    const startedAt = performance.now();
    try {
      const appended = await store.append(stream, expectedRevision, events);
      metrics.appended((performance.now() - startedAt) / 1_000);
      return appended;
    } catch (error) {
      if (error instanceof WrongExpectedRevision) metrics.versionConflict();
      throw error;
    }
  },
});
