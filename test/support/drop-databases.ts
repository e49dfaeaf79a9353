/** Loaded before each test file, so that its hook runs after all of the file's own. */
import { afterAll } from 'vitest';
import { dropDatabases } from './database.ts';

afterAll(dropDatabases);
