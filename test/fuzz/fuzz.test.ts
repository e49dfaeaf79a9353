/**
 * Random requests over real HTTP, as many as EXUVIA_FUZZ_REQUESTS says: no failure of ours, no answer outside the
 * contract, no event of a refused request but its one audited denial. EXUVIA_FUZZ_SEED repeats a run.
 */
import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { followEvents } from '../support/request-events.ts';
import { createFuzzClient, linesOf, type FuzzAnswer, type FuzzClient } from './client.ts';
import { graphqlRequest } from './graphql-requests.ts';
import { judgeAnswer, judgeEvents } from './judge.ts';
import { createRandom } from './random.ts';
import { restRequest, type FuzzRequest } from './rest-requests.ts';
import { createWorld, type World } from './world.ts';

const wanted = Number(process.env['EXUVIA_FUZZ_REQUESTS'] ?? 2_000);
const firstSeed = Number(process.env['EXUVIA_FUZZ_SEED'] ?? randomInt(2 ** 31));
const batchSize = 250;
const batchesOfAWorld = 16;
/** Failures told of one batch. */
const shown = 3;

let world: World;
let client: FuzzClient;
beforeAll(async () => {
  world = await createWorld();
  client = createFuzzClient(world.application.origin);
});
afterAll(async () => {
  client?.close();
  await world?.close();
});

const textOf = (request: FuzzRequest, answer?: FuzzAnswer): string => {
  const { credential, method, target, body } = request;
  const lines = linesOf(request).map(([name, value]) => `${name}: ${name === 'x-api-key' ? `(${credential.name})` : value.slice(0, 200)}`);
  const asked = [`${method} ${target.slice(0, 500)}`, ...lines, '', (body ?? '').toString().slice(0, 1_500)].join('\n');
  return answer === undefined ? asked : `${asked}\n--- answered ${answer.status} ${JSON.stringify(answer.headers)}\n${answer.body.slice(0, 1_500)}`;
};

const learnFrom = ({ body, status }: FuzzAnswer): void => {
  if (status >= 300) return;
  for (const [id] of body.matchAll(/\b(?!req_)[a-z]{2,4}_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f-]{18}\b/g)) world.learn(id);
};

it(`${wanted} random requests`, { timeout: 60_000 + wanted * 20 }, async () => {
  const tally = new Map<string, number>();
  const count = (what: string) => void tally.set(what, (tally.get(what) ?? 0) + 1);
  const newEvents = followEvents(world.application.database);
  await newEvents();
  for (let sent = 0, batch = 0; sent < wanted; sent += batchSize, batch++) {
    const seed = firstSeed + batch;
    const random = createRandom(seed);
    if (batch > 0 && batch % batchesOfAWorld === 0) {
      await world.renew();
      await newEvents();
    }
    const requests = Array.from({ length: Math.min(batchSize, wanted - sent) }, () => (random.chance(0.6) ? restRequest(random, world) : graphqlRequest(random, world)));
    const answers = await Promise.all(requests.map((request) => client.send(request).catch((error: unknown) => expect.fail(`Seed ${seed}: ${String(error)}\n${textOf(request)}`))));
    const verdicts = answers.map((answer, index) => judgeAnswer(requests[index]!, answer));
    const events = Map.groupBy(await newEvents(), ({ metadata: { requestId } }) => requestId ?? '');
    const wrong = verdicts.flatMap((verdict, index) => {
      const [request, answer] = [requests[index]!, answers[index]!];
      count(`${request.route === undefined ? 'GraphQL' : 'REST'} ${answer.status}`);
      const faults = [...verdict.faults, ...judgeEvents(request, verdict, events.get(verdict.requestId ?? '-') ?? [])];
      return faults.length === 0 ? [] : [`Request ${index}: ${faults.join('; ').slice(0, 500)}\n${textOf(request, answer)}`];
    });
    if (wrong.length > 0) expect.fail(`Seed ${seed}, ${wrong.length} of ${requests.length} requests went wrong, among them\n\n${wrong.slice(0, shown).join('\n\n')}`);
    expect(world.complaints, `the log after seed ${seed}`).toEqual([]);
    const answered = new Set(verdicts.map(({ requestId }) => requestId));
    const unasked = [...events.keys()].filter((requestId) => requestId !== '' && !answered.has(requestId));
    expect(unasked, `events that no request of seed ${seed} explains`).toEqual([]);
    answers.forEach(learnFrom);
  }
  console.log(`${wanted} random requests from seed ${firstSeed}: ${[...tally].toSorted().map(([what, times]) => `${what} × ${times}`).join(', ')}`);
});
