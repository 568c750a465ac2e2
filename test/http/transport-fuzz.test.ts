import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proofCount } from '../support/proof-settings.ts';
import { readCorpus, readServiceCorpus } from './fuzz/corpus.ts';
import { openEchoDoor } from './fuzz/echo-door.ts';
import { fuzz } from './fuzz/fuzz.ts';
import { startServiceTwins } from './fuzz/service-twins.ts';

const number = (name: string, otherwise: number) => Number(process.env[name] ?? otherwise);
const COUNT = proofCount('PORTICO_FUZZ', 2_500, 400);
const SEED = number('PORTICO_FUZZ_SEED', Math.floor(Math.random() * 2 ** 31));
const FIRST = number('PORTICO_FUZZ_FIRST', 0);
const TIMEOUT = 300_000 + COUNT * 200;

test(`${COUNT} conversations end by the fast path as they do without it`, { timeout: TIMEOUT }, async (t) => {
  t.diagnostic(`PORTICO_FUZZ_SEED=${SEED}`);
  await using fast = await openEchoDoor(true);
  await using fastify = await openEchoDoor(false);
  const found = await fuzz({ corpus: readCorpus(), seed: SEED, first: FIRST, count: COUNT, fast, fastify });
  if (found.length > 0) assert.fail(found.join('\n'));
  // What GET /failure throws.
  for (const { log } of [fast, fastify])
    assert.deepEqual(
      log.entries.filter(({ msg }) => msg !== 'request failed'),
      [],
    );
  t.diagnostic(`${fast.fast} requests by the fast path`);
  if (COUNT > 100) assert.ok(fast.fast > COUNT / 2);
  assert.equal(fastify.fast, 0);
});

const SHARE = Math.ceil(COUNT / 10);

for (const door of ['rest', 'graphql', 'webhook'] as const) {
  test(`${SHARE} conversations with the ${door} door store by the fast path what they store without it`, {
    timeout: TIMEOUT,
  }, async (t) => {
    t.diagnostic(`PORTICO_FUZZ_SEED=${SEED}`);
    await using services = await startServiceTwins();
    const [fast, fastify] = services.doors(door);
    const corpus = readServiceCorpus(door);
    const found = await fuzz({ corpus, seed: SEED, first: FIRST, count: SHARE, fast, fastify });
    if (found.length > 0) assert.fail(found.join('\n'));
    if (SHARE > 10) assert.ok(services.stored >= SHARE / 20);
  });
}
