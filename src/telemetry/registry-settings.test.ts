import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  HealthCheckNameError,
  type HealthIndicator,
  HealthRegistry,
  type HealthResult,
  type HealthStatus,
} from './health.ts';

const UP: HealthResult = { status: 'UP' };
const hangs = () => new Promise<never>(() => {});
const always = (name: string, status: HealthStatus, critical?: boolean): HealthIndicator => ({
  name,
  critical,
  check: () => ({ status }),
});

test('what is not critical is DOWN for itself and says so; the whole goes by the others', async () => {
  const optional = { name: 'optional', check: () => 3, critical: false };
  const registry = new HealthRegistry([always('needed', 'UP'), optional]);
  assert.deepEqual(await registry.check(), {
    status: 'UP',
    components: { needed: UP, optional: { status: 'DOWN', details: { critical: false, code: 3 } } },
  });
  assert.equal((await new HealthRegistry([optional]).check()).status, 'UP');
  assert.equal((await new HealthRegistry([always('needed', 'DOWN'), optional]).check()).status, 'DOWN');
  const { components } = await new HealthRegistry([always('fine', 'UP', false)]).check();
  assert.deepEqual(components, { fine: { status: 'UP', details: { critical: false } } });
});

test('the worst status of the checks is that of the whole', async () => {
  const registry = new HealthRegistry([
    always('up', 'UP'),
    always('unknown', 'UNKNOWN'),
    always('out', 'OUT_OF_SERVICE'),
  ]);
  assert.equal((await registry.check()).status, 'OUT_OF_SERVICE');
  assert.equal((await registry.check(['up', 'unknown'])).status, 'UP');
  assert.equal((await registry.check(['unknown'])).status, 'UNKNOWN');
});

test('only the checks that are asked for run', async () => {
  const ran: string[] = [];
  const noting = (name: string): HealthIndicator => ({
    name,
    check() {
      ran.push(name);
      return UP;
    },
  });
  const registry = new HealthRegistry(['a', 'b', 'c'].map(noting));
  assert.deepEqual(registry.names, ['a', 'b', 'c']);
  assert.deepEqual(await registry.check(['c', 'a', 'nope']), { status: 'UP', components: { c: UP, a: UP } });
  assert.deepEqual(ran, ['c', 'a']);
});

test('each check has the time that it asks for', async () => {
  const registry = new HealthRegistry(
    [
      { name: 'short', check: hangs, timeoutMs: 5 },
      { name: 'other', check: hangs },
    ],
    { timeoutMs: 10 },
  );
  const { components } = await registry.check();
  const errors = Object.values(components).map(({ details }) => details?.error);
  assert.deepEqual(errors, ['TimeoutError: no answer within 5 ms', 'TimeoutError: no answer within 10 ms']);
});

test('a result is kept for its time to live', async () => {
  let time = 0;
  let code = 0;
  const registry = new HealthRegistry(
    [
      { name: 'kept', check: () => code, ttlMs: 1_000 },
      { name: 'asked', check: () => code },
    ],
    { now: () => time },
  );
  const statuses = async () => Object.values((await registry.check()).components).map(({ status }) => status);
  assert.deepEqual(await statuses(), ['UP', 'UP']);
  code = 1;
  time = 999;
  assert.deepEqual(await statuses(), ['UP', 'DOWN']);
  time = 1_000;
  assert.deepEqual(await statuses(), ['DOWN', 'DOWN']);
});

test('each run is told of once, with what it found and how long it took', async () => {
  const told: [string, HealthStatus, boolean][] = [];
  const late = Promise.withResolvers<HealthResult>();
  const registry = new HealthRegistry(
    [
      always('now', 'UP'),
      { name: 'soon', check: async () => UP },
      { name: 'late', check: () => late.promise, timeoutMs: 5 },
      { name: 'throws', check: () => assert.fail('broken') },
    ],
    { onChecked: (name, { status }, durationMs) => told.push([name, status, durationMs >= 0]) },
  );
  await registry.check();
  assert.deepEqual(told.toSorted(), [
    ['late', 'DOWN', true],
    ['now', 'UP', true],
    ['soon', 'UP', true],
    ['throws', 'DOWN', true],
  ]);
  late.resolve(UP);
  await new Promise(setImmediate);
  assert.equal(told.length, 4, 'its time was over already');
});

test('a registry with more checks shares those it has', async () => {
  let starts = 0;
  const run = Promise.withResolvers<HealthResult>();
  const shared: HealthIndicator = {
    name: 'shared',
    check() {
      starts++;
      return run.promise;
    },
  };
  const registry = new HealthRegistry([shared]);
  const more = registry.with([always('more', 'UP')]);
  const both = Promise.all([registry.check(), more.check()]);
  run.resolve(UP);
  const [one, two] = await both;
  assert.deepEqual(Object.keys(one.components), ['shared']);
  assert.deepEqual(Object.keys(two.components), ['shared', 'more']);
  assert.equal(starts, 1);
  assert.throws(() => registry.with([always('shared', 'UP')]), HealthCheckNameError);
});
