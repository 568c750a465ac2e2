import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify from 'fastify';
import { graphql } from '../../src/graphql/graphql.ts';
import { usersSchema } from '../../src/graphql/users-schema.ts';
import { LocalUserFeed } from '../../src/relations/events.ts';
import { MemoryUserStore } from '../../src/relations/user-stores.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { ask, openDoor } from './support/door.ts';

async function start(maxSeries = 1_000) {
  const metrics = new Metrics({ maxSeries });
  const feed = new LocalUserFeed();
  const app = fastify();
  app.register(graphql, { schema: usersSchema(new MemoryUserStore(feed, 3), feed), metrics });
  const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/graphql`;
  /** By the values of its tags, how often a series was counted. */
  const counts = (name: string) => {
    const series = [...(metrics.meter(name)?.series() ?? [])];
    const count = (measured: ReturnType<(typeof series)[number]['measure']>) =>
      measured.find(({ statistic }) => statistic === 'COUNT')?.value;
    return Object.fromEntries(
      series.map((one) => [one.tags.map(({ value }) => value).join(' '), count(one.measure())]),
    );
  };
  return {
    url,
    metrics,
    counts,
    async [Symbol.asyncDispose]() {
      await app.close();
      metrics[Symbol.dispose]();
    },
  };
}

test('operations are counted by name, type and outcome', async () => {
  await using server = await start();
  for (let time = 0; time < 3; time++) await ask(server.url, 'query Greeting { hello }');
  await ask(server.url, '{ hello }');
  const create = 'mutation Create { createUser(name: "a", email: "a@b") { id } }';
  for (let time = 0; time < 3; time++) await ask(server.url, create);
  await ask(server.url, 'query User($id: ID!) { user(id: $id) { id } }');
  assert.deepEqual(server.counts('graphql.operations'), {
    'Greeting query success': 3,
    'anonymous query success': 1,
    'Create mutation success': 1,
    'Create mutation error': 2,
    'User query error': 1,
  });
});

test('looked-up documents are counted by what became of them', async () => {
  await using server = await start();
  for (let time = 0; time < 4; time++) await ask(server.url, '{ hello }');
  for (let time = 0; time < 2; time++) await ask(server.url, '{ nothing }');
  await ask(server.url, '{');
  assert.deepEqual(server.counts('graphql.documents'), { hit: 3, miss: 1, refused: 3 });
});

test('a flood of operation names stays within the cap', async () => {
  await using server = await start(20);
  for (let number = 0; number < 200; number++) await ask(server.url, `query Q${number} { hello }`);
  const counts = server.counts('graphql.operations');
  assert.ok(Object.keys(counts).length <= 21, String(Object.keys(counts).length));
  const total = Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0);
  assert.equal(total, 200);
  assert.equal(server.counts('meters.overflow')['graphql.operations'], 180);
});

test('the service shows them at its management door', async () => {
  await using door = await openDoor({ env: { INTERFACES: 'graphql,management' } });
  await ask(door.url, 'query Greeting { hello }');
  const response = await fetch(`${door.service.urls.management}/actuator/metrics`);
  const { names } = (await response.json()) as { readonly names: readonly string[] };
  assert.ok(names.includes('graphql.operations') && names.includes('graphql.documents'), names.join());
});
