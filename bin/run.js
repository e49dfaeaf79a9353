#!/usr/bin/env node
/** `node bin/run.js [node options] <file or tool> …`: one of our files or an installed tool under Node 24, for package scripts. */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { launch } from './launch.js';

const args = process.argv.slice(2);
const at = args.findIndex((arg) => !arg.startsWith('-'));
const isFile = /\.[jt]s$/.test(args[at]);
args[at] = realpathSync(isFile ? args[at] : fileURLToPath(new URL(`../node_modules/.bin/${args[at]}`, import.meta.url)));
launch(args);
