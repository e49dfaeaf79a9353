#!/usr/bin/env node
/** The `exuvia` command: src/cli.ts under Node 24. */
import { fileURLToPath } from 'node:url';
import { launch } from './launch.js';

launch([fileURLToPath(new URL('../src/cli.ts', import.meta.url)), ...process.argv.slice(2)]);
