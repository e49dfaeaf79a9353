/** What the benches share: a real server with durable commits, rates, and medians of interleaved rounds. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbedded } from '../../src/postgres/embedded.ts';
import { migrate } from '../../src/postgres/migrate.ts';

/** One line of the bench table: a rate beside its yardstick of the same run. */
export interface Row {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly yardstick: string;
  readonly yardstickValue: number;
  readonly ratio: number;
  /** The ratio the product aims for, where it names one. */
  readonly aim?: number;
}

/** Runs a measurement on a migrated database of its own, with the settings of the product. */
export const withServer = async <T>(use: (url: string) => Promise<T>): Promise<T> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'exuvia-bench-'));
  const server = await startEmbedded({ dataDir });
  try {
    await migrate(server.url);
    return await use(server.url);
  } finally {
    await server.stop();
    await rm(dataDir, { recursive: true });
  }
};

/** How often per second the callers get their step done, all at once, for `durationMs`. */
export const rate = async (steps: readonly (() => Promise<unknown>)[], durationMs: number): Promise<number> => {
  const begin = performance.now();
  let done = 0;
  await Promise.all(
    steps.map(async (step) => {
      while (performance.now() < begin + durationMs) {
        await step();
        done += 1;
      }
    }),
  );
  return (done * 1_000) / (performance.now() - begin);
};

/** Runs the measurements in turn, round after round, and gives the median of each: the machine's moods meet all alike. */
export const interleaved = async (rounds: number, measurements: readonly (() => Promise<number>)[]): Promise<number[]> => {
  const results: number[][] = measurements.map(() => []);
  for (let round = 0; round < rounds; round += 1)
    for (const [index, measurement] of measurements.entries()) results[index]!.push(await measurement());
  return results.map((numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1]!);
};
