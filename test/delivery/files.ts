/** The container files as data: what docker-compose.yml and the Dockerfile say about each process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export const root = join(import.meta.dirname, '../..');
const text = (name: string): string => readFileSync(join(root, name), 'utf8');

export interface Service {
  readonly image: string;
  readonly build?: string;
  readonly hostname?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck: { readonly test: readonly string[] };
  readonly init?: boolean;
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly networks: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  readonly volumes: Readonly<Record<string, null>>;
}

export const composeText = text('docker-compose.yml');
export const composeFile = parse(composeText, { merge: true }) as ComposeFile;

/** Puts variables in as compose does: `${NAME:?message}` must be there, `${NAME:-default}` need not. */
export const interpolate = (value: string, variables: Readonly<Record<string, string>>): string =>
  value.replace(/\$\{(\w+)(?::([?-])([^}]*))?\}/g, (_, name: string, operator: string | undefined, rest: string) => {
    const found = variables[name] ?? '';
    if (found !== '') return found;
    if (operator === '?') throw new Error(`${name} is missing: ${rest}`);
    return rest;
  });

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** The stages of the Dockerfile, each from its FROM on. */
export const stages: readonly (readonly Instruction[])[] = text('Dockerfile')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ name: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1) }))
  .reduce<Instruction[][]>((all, instruction) => {
    if (instruction.name === 'FROM') all.push([]);
    all.at(-1)!.push(instruction);
    return all;
  }, []);

const last = stages.at(-1)!;
const all = (name: string): readonly string[] => last.filter((instruction) => instruction.name === name).map(({ rest }) => rest);
const list = (name: string): readonly string[] => JSON.parse(all(name)[0]!) as readonly string[];

/** The image itself. */
export const image = {
  user: all('USER').at(-1),
  workdir: all('WORKDIR').at(-1)!,
  environment: Object.fromEntries(all('ENV').map((entry) => entry.split('=') as [string, string])),
  entrypoint: list('ENTRYPOINT'),
  command: list('CMD'),
  /** Files and folders of the checkout that it holds; each lies under its own name. */
  sources: all('COPY').flatMap((entry) => (entry.startsWith('--from=') ? [] : entry.split(' ').slice(0, -1))),
};

/** What a build may see of the checkout. */
export const visible: readonly string[] = text('.dockerignore')
  .split('\n')
  .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));

const packages = Object.entries(
  (JSON.parse(text('package-lock.json')) as { packages: Record<string, { dev?: true; optional?: true; devOptional?: true }> }).packages,
).filter(([path]) => path !== '');
const isNested = (path: string): boolean => path.lastIndexOf('node_modules/') > 0;
const isProduction = ([, { dev, optional, devOptional }]: (typeof packages)[number]): boolean => !dev && !optional && !devOptional;

/** The packages of a production installation without optional ones, as paths in the checkout; each with what is nested in it. */
export const productionPackages: readonly string[] = packages.filter(isProduction).flatMap(([path]) => (isNested(path) ? [] : [path]));

/** Packages that an installation would leave out, inside of ones that it holds. */
export const nestedStrays: readonly string[] = packages
  .filter((entry) => !isProduction(entry))
  .flatMap(([path]) => (productionPackages.some((outer) => path.startsWith(`${outer}/`)) ? [path] : []));
