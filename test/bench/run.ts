/** `npm run bench`: every bench, one after the other, as one table for the README. Aims are reported, never a gate. */
import { measure as append } from './append.bench.ts';
import { measure as catchUp } from './catch-up.bench.ts';
import { measure as deployment } from './deployment.bench.ts';
import { measure as edges } from './edges.bench.ts';
import type { Row } from './measure.ts';

const number = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: value < 1_000 ? 1 : 0 });

const line = ({ name, unit, value, yardstick, yardstickValue, ratio, aim }: Row): string =>
  `| ${name} | ${number(value)} ${unit} | ${yardstick}: ${number(yardstickValue)} | ${ratio.toFixed(2)} | ${aim === undefined ? '' : aim.toFixed(2)} |`;

process.stdout.write('| What | Measured | Yardstick in the same run | Ratio | Aim |\n| --- | --- | --- | --- | --- |\n');
for (const measure of [append, edges, deployment, catchUp]) for (const row of await measure()) process.stdout.write(`${line(row)}\n`);
