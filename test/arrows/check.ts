/** Checks that no arrow between our folders is broken, and that each rule is able to report one. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cruise, type ICruiseOptions, type ICruiseResult, type IForbiddenRuleType } from 'dependency-cruiser';

const root = join(import.meta.dirname, '../..');
const { forbidden, options } = createRequire(import.meta.url)(join(root, '.dependency-cruiser.cjs')) as {
  forbidden: (IForbiddenRuleType & { name: string })[];
  options: ICruiseOptions;
};

const violationsBelow = async (baseDir: string) => {
  const folders = ['src', 'schema', 'projections', 'test'].filter((folder) => existsSync(join(baseDir, folder)));
  const { output } = await cruise(folders, { ...options, baseDir, validate: true, ruleSet: { forbidden } });
  return (output as ICruiseResult).summary.violations;
};

const broken = await violationsBelow(root);
for (const { rule, from, to } of broken) console.error(`${rule.name}: ${from} → ${to}`);

const reported = new Set((await violationsBelow(join(import.meta.dirname, 'fixture'))).map(({ rule }) => rule.name));
const silent = forbidden.filter(({ name }) => !reported.has(name));
for (const { name } of silent) console.error(`${name}: not reported for test/arrows/fixture, which breaks it`);

console.log(`${forbidden.length} rules, ${broken.length} broken arrows, ${silent.length} silent rules`);
process.exitCode = broken.length + silent.length === 0 ? 0 : 1;
