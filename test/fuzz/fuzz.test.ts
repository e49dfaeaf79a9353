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
/** A run ends early, and tells of no more, once so much went wrong. */
const mostShown = 10;

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
  const wrong: string[] = [];
  const newEvents = followEvents(world.application.database);
  await newEvents();
  let sent = 0;
  for (let batch = 0; sent < wanted && wrong.length < mostShown; sent += batchSize, batch++) {
    const seed = firstSeed + batch;
    const random = createRandom(seed);
    if (batch > 0 && batch % batchesOfAWorld === 0) {
      await world.renew();
      await newEvents();
    }
    const requests = Array.from({ length: Math.min(batchSize, wanted - sent) }, () => (random.chance(0.6) ? restRequest(random, world) : graphqlRequest(random, world)));
    const sendings = await Promise.allSettled(requests.map((request) => client.send(request)));
    const events = Map.groupBy(await newEvents(), ({ metadata: { requestId } }) => requestId ?? '');
    const answered = new Set(['']);
    for (const [index, request] of requests.entries()) {
      const sending = sendings[index]!;
      if (sending.status === 'rejected') {
        wrong.push(`Seed ${seed}, request ${index}: ${String(sending.reason)}\n${textOf(request)}`);
        continue;
      }
      const answer = sending.value;
      const verdict = judgeAnswer(request, answer);
      const faults = [...verdict.faults, ...judgeEvents(request, verdict, events.get(verdict.requestId ?? '-') ?? [])];
      if (faults.length > 0) wrong.push(`Seed ${seed}, request ${index}: ${faults.join('; ').slice(0, 500)}\n${textOf(request, answer)}`);
      if (verdict.requestId !== undefined) answered.add(verdict.requestId);
      const kind = `${request.route === undefined ? 'GraphQL' : 'REST'} ${answer.status}`;
      tally.set(kind, (tally.get(kind) ?? 0) + 1);
      learnFrom(answer);
    }
    wrong.push(...world.complaints.splice(0).map((line) => `Seed ${seed} left in the log: ${line}`));
    wrong.push(...[...events.keys()].filter((requestId) => !answered.has(requestId)).map((requestId) => `No answer of seed ${seed} explains the events of ${requestId}`));
  }
  console.log(`${Math.min(sent, wanted)} random requests from seed ${firstSeed}: ${[...tally].toSorted().map(([kind, times]) => `${kind} × ${times}`).join(', ')}`);
  if (wrong.length > 0) expect.fail(`${wrong.length} of ${sent} requests from seed ${firstSeed} went wrong:\n\n${wrong.slice(0, mostShown).join('\n\n')}`);
});
