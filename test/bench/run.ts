/** `npm run bench`: every bench on every event store, one after the other, as one table for the README; `-- --quick` only shows that they run. Aims are reported, never a gate. */
import { measure as append } from './append.bench.ts';
import { measure as catchUp } from './catch-up.bench.ts';
import { measure as deployment } from './deployment.bench.ts';
import { measure as edges } from './edges.bench.ts';
import { storeNames, type Row, type StoreName } from './measure.ts';

const number = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: value < 1_000 ? 1 : 0 });

const line = (store: StoreName, { name, unit, value, yardstick, yardstickValue, ratio, aim }: Row): string =>
  `| ${name} | ${store} | ${number(value)} ${unit} | ${yardstick}: ${number(yardstickValue)} | ${ratio.toFixed(2)} | ${aim === undefined || store !== 'PostgreSQL' ? '' : aim.toFixed(2)} |`;

process.stdout.write('| What | Event store | Measured | Yardstick in the same run | Ratio | Aim |\n| --- | --- | --- | --- | --- | --- |\n');
for (const measure of [append, edges, deployment, catchUp])
  for (const store of storeNames) for (const row of await measure(store)) process.stdout.write(`${line(store, row)}\n`);
