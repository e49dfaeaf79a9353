#!/usr/bin/env node
/** `node bin/run.js <file or tool> …`: one of our files or an installed tool under Node 24, for package scripts. */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { launch } from './launch.js';

const [name, ...args] = process.argv.slice(2);
const isFile = /\.[jt]s$/.test(name);
launch(realpathSync(isFile ? name : fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url))), args);
