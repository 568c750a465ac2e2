import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Silence } from './connections.ts';

test('a silence ends after its time, counted from what came last', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let ends = 0;
  const silence = new Silence(80, () => ends++);
  t.mock.timers.tick(70);
  silence.broken();
  t.mock.timers.tick(79);
  assert.equal(ends, 0);
  t.mock.timers.tick(1_000);
  assert.equal(ends, 1);
});

test('one that is stopped never ends', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const silence = new Silence(80, () => assert.fail('it ended'));
  silence.stop();
  t.mock.timers.tick(1_000);
});

test('while the loop is held no silence passes', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const began = performance.now();
  const silence = new Silence(40, resolve);
  while (performance.now() - began < 200);
  setImmediate(() => setImmediate(() => silence.broken()));
  await promise;
  assert.ok(performance.now() - began >= 220, 'it ended for the time in which nothing could be read');
});
