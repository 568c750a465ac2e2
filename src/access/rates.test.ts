import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ClientRate } from './rates.ts';

test('a burst at once, then one for each interval', () => {
  const rate = new ClientRate({ limit: 10, windowMs: 1_000, burst: 3 });
  const taken = (now: number) => rate.take('a', now).isWithin;
  assert.deepEqual([taken(0), taken(0), taken(0), taken(0)], [true, true, true, false]);
  assert.equal(rate.take('b', 0).isWithin, true, 'another client is another one');
  assert.equal(rate.take('a', 40).wait, 60);
  assert.deepEqual([taken(99), taken(100), taken(100)], [false, true, false]);
  assert.deepEqual([taken(10_000), taken(10_000), taken(10_000), taken(10_000)], [true, true, true, false]);
});

test('what is left is what may come at once, and no client gets more than its rate and its burst', () => {
  const rule = fc.record({
    limit: fc.integer({ min: 1, max: 1_000 }),
    windowMs: fc.constantFrom(1_000, 60_000, 3_600_000),
    burst: fc.integer({ min: 1, max: 50 }),
  });
  const steps = fc.array(fc.tuple(fc.nat(2_000), fc.constantFrom('a', 'b')), { maxLength: 100 });
  fc.assert(
    fc.property(rule, steps, (given, pauses) => {
      const rate = new ClientRate(given);
      const interval = given.windowMs / given.limit;
      const passed = { a: 0, b: 0 };
      let now = 0;
      for (const [pause, client] of pauses) {
        now += pause;
        const quota = rate.take(client as 'a' | 'b', now);
        if (!quota.isWithin) {
          assert.ok(quota.wait > 0 && quota.wait <= interval + 1e-6);
          continue;
        }
        passed[client as 'a' | 'b']++;
        assert.ok(passed[client as 'a' | 'b'] <= given.burst + now / interval + 1e-3);
        assert.ok(quota.remaining <= given.burst - 1);
      }
      // All that is left may come now, and then no more.
      const before = rate.take('a', now);
      for (let i = 0; i < before.remaining; i++) assert.ok(rate.take('a', now).isWithin);
      assert.equal(rate.take('a', now).isWithin, false);
    }),
  );
});

test('clients beyond the limit take no more memory', () => {
  const rate = new ClientRate({ limit: 1, windowMs: 3_600_000, burst: 2 }, 100);
  for (let i = 0; i < 1_000; i++) {
    rate.take(`client ${i}`, i);
    assert.ok(rate.clients <= 100);
  }
  rate.take('client 1', 7_300_000);
  rate.take('client 1', 14_600_000);
  assert.ok(rate.clients <= 2, 'full buckets are forgotten');
});

test('a client is remembered until its bucket is full, also where others are forgotten meanwhile', () => {
  const rate = new ClientRate({ limit: 1, windowMs: 1_000, burst: 1 });
  assert.equal(rate.take('first', 0).isWithin, true);
  assert.equal(rate.take('a', 999).isWithin, true);
  assert.equal(rate.take('first', 1_000).isWithin, true, 'a new generation begins');
  assert.equal(rate.take('a', 1_001).isWithin, false);
});

test('the fields say the policy, what is left and when all of it is back', () => {
  const quota = { isWithin: true, remaining: 4, wait: 0, reset: 1_200 };
  assert.deepEqual(new ClientRate({ limit: 100, windowMs: 60_000, burst: 100 }).fieldsOf(quota), {
    'ratelimit-policy': '"client";q=100;w=60',
    ratelimit: '"client";r=4;t=2',
  });
  assert.equal(
    new ClientRate({ limit: 100, windowMs: 1_000, burst: 20 }).fieldsOf(quota)['ratelimit-policy'],
    '"client";q=100;w=1, "burst";q=20',
  );
});
