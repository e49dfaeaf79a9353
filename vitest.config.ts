/** How the tests run: real processes and one PostgreSQL server for all of them. */
import { createRequire } from 'node:module';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: {
    // Otherwise Vite loads the ES module and Node the CommonJS one, and printSchema meets types of another realm.
    alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql/index.js') }],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**', 'test/arrows/**'],
    globalSetup: ['test/support/cluster.ts'],
    setupFiles: ['test/support/drop-databases.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    allowOnly: false,
    reporters: ['default', './test/support/closing-line.ts'],
  },
});
