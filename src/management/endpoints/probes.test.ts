import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { HealthRegistry, Readiness } from '../../telemetry/health.ts';
import { addProbes, healthView } from './health.ts';

type HealthViewOptions = Parameters<typeof healthView>[0];

async function start(changes: Partial<HealthViewOptions> = {}) {
  const readiness = new Readiness();
  readiness.accept();
  const app = Fastify();
  addProbes(
    app,
    healthView({ health: new HealthRegistry([]), readiness, secrets: { texts: [] }, ...changes }),
  );
  const probe = async (path: string): Promise<[number, string]> => {
    const { statusCode, body } = await app.inject(path);
    return [statusCode, body];
  };
  return { probe, readiness, [Symbol.asyncDispose]: () => app.close() };
}

const dbThat = (status: 'UP' | 'DOWN', critical = true) =>
  new HealthRegistry([{ name: 'db', critical, check: () => ({ status }) }]);

test('not ready is OUT_OF_SERVICE, and the process is alive all the time', async () => {
  await using door = await start();
  assert.deepEqual(await door.probe('/readyz'), [200, '{"status":"UP"}']);
  door.readiness.refuse();
  assert.deepEqual(await door.probe('/readyz'), [503, '{"status":"OUT_OF_SERVICE"}']);
  assert.deepEqual(await door.probe('/livez'), [200, '{"status":"UP"}']);
});

test('without its database the process is not ready, but alive', async () => {
  await using door = await start({ health: dbThat('DOWN') });
  assert.deepEqual(await door.probe('/readyz'), [503, '{"status":"DOWN"}']);
  assert.deepEqual(await door.probe('/livez'), [200, '{"status":"UP"}']);
  await using without = await start({ health: dbThat('DOWN', false) });
  assert.deepEqual(await without.probe('/readyz'), [200, '{"status":"UP"}']);
});

test('the status alone, unless the group is for everybody', async () => {
  const health = dbThat('UP');
  const full = '{"status":"UP","components":{"db":{"status":"UP"},"readinessState":{"status":"UP"}}}';
  const include = ['db', 'readinessState'];
  for (const [changes, body] of [
    [{ showDetails: 'when-authorized' }, '{"status":"UP"}'],
    [{ showDetails: 'never' }, '{"status":"UP"}'],
    [{ showDetails: 'always' }, full],
    [{ healthGroups: new Map([['readiness', { include, showDetails: 'always' }]]) }, full],
    [
      { showDetails: 'always', healthGroups: new Map([['readiness', { include, showDetails: 'never' }]]) },
      '{"status":"UP"}',
    ],
  ] as readonly (readonly [Partial<HealthViewOptions>, string])[]) {
    await using door = await start({ health, ...changes });
    assert.deepEqual(await door.probe('/readyz'), [200, body]);
  }
});

test('a probe answers for the group as it is configured', async () => {
  const health = new HealthRegistry([{ name: 'mine', check: () => ({ status: 'DOWN' }) }]);
  const healthGroups = new Map([['liveness', { include: ['livenessState', 'mine'] }]]);
  await using door = await start({ health, healthGroups });
  assert.deepEqual(await door.probe('/livez'), [503, '{"status":"DOWN"}']);
  assert.deepEqual(await door.probe('/readyz'), [200, '{"status":"UP"}']);
});
