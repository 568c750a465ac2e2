import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GenerationalCache } from './generational-cache.ts';

test('what was set is there, what was not is not', () => {
  const cache = new GenerationalCache<object>(10, 1_000);
  const value = {};
  cache.set('key', value);
  assert.equal(cache.get('key'), value);
  for (const key of ['', 'Key', 'constructor', '__proto__']) assert.equal(cache.get(key), undefined);
  cache.set('__proto__', value);
  assert.equal(cache.get('__proto__'), value);
});

test('what is used stays, what is not goes', () => {
  const cache = new GenerationalCache<number>(10, 1_000);
  cache.set('used', 1);
  cache.set('unused', 2);
  for (let number = 0; number < 100; number++) {
    cache.set(`k${number}`, number);
    assert.equal(cache.get('used'), 1);
  }
  assert.equal(cache.get('unused'), undefined);
});

test('at least half of what fits is remembered', () => {
  for (const max of [2, 3, 4, 7, 100, 101]) {
    const cache = new GenerationalCache<number>(max, 1_000_000);
    for (let number = 0; number < 3 * max; number++) cache.set(`k${number}`, number);
    for (let back = 1; back <= Math.floor(max / 2); back++) {
      assert.equal(cache.get(`k${3 * max - back}`), 3 * max - back);
    }
  }
});

test('a key that would fill half of the room is not remembered, and drives nothing out', () => {
  const cache = new GenerationalCache<number>(10, 20);
  cache.set('a', 1);
  cache.set('x'.repeat(11), 2);
  assert.equal(cache.get('x'.repeat(11)), undefined);
  cache.set('y'.repeat(9), 3);
  assert.equal(cache.get('y'.repeat(9)), 3);
  assert.equal(cache.get('a'), 1);
});

test('with no room nothing is remembered', () => {
  const cache = new GenerationalCache<number>(0, 100);
  cache.set('a', 1);
  assert.equal(cache.get('a'), undefined);
  assert.equal(cache.size, 0);
});

test('its bounds hold and it never tells a wrong value, whatever is done', () => {
  const step = fc.record({ set: fc.boolean(), key: fc.string({ maxLength: 8 }) });
  fc.assert(
    fc.property(fc.nat(9), fc.nat(60), fc.array(step, { maxLength: 200 }), (maxEntries, maxLength, steps) => {
      const cache = new GenerationalCache<string>(maxEntries, maxLength);
      const keys = new Set<string>();
      for (const { set, key } of steps) {
        keys.add(key);
        const found = cache.get(key);
        assert.ok(found === undefined || found === `value of ${key}`);
        // As its users do: only what is not there is set.
        if (set && found === undefined) cache.set(key, `value of ${key}`);
        assert.ok(cache.size <= maxEntries, `${cache.size} of ${maxEntries}`);
      }
      const copy = [...keys].filter((key) => cache.get(key) !== undefined);
      assert.ok(copy.join('').length <= maxLength);
    }),
    { numRuns: 500 },
  );
});
