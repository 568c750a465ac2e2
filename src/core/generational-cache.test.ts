import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GenerationalCache } from './generational-cache.ts';

test('what was set is there, what was not is not', () => {
  const cache = new GenerationalCache<object>(1_000);
  const value = {};
  cache.set('key', value, 1);
  assert.equal(cache.get('key'), value);
  for (const key of ['', 'Key', 'constructor', '__proto__']) assert.equal(cache.get(key), undefined);
  cache.set('__proto__', value, 1);
  assert.equal(cache.get('__proto__'), value);
});

test('what is used stays, what is not goes', () => {
  const cache = new GenerationalCache<number>(10);
  cache.set('used', 1, 1);
  cache.set('unused', 2, 1);
  for (let number = 0; number < 100; number++) {
    cache.set(`k${number}`, number, 1);
    assert.equal(cache.get('used'), 1);
  }
  assert.equal(cache.get('unused'), undefined);
});

test('what is used again is counted once', () => {
  const cache = new GenerationalCache<string>(20);
  for (const key of 'abcdef') cache.set(key, key, 2);
  assert.equal(cache.bytes, 12);
  assert.equal(cache.get('a'), 'a', 'from the old generation');
  assert.equal(cache.bytes, 12);
});

test('at least half of what fits is remembered', () => {
  for (const max of [2, 3, 4, 7, 100, 101]) {
    const cache = new GenerationalCache<number>(max);
    for (let number = 0; number < 3 * max; number++) cache.set(`k${number}`, number, 1);
    for (let back = 1; back <= Math.floor(max / 2); back++) {
      assert.equal(cache.get(`k${3 * max - back}`), 3 * max - back);
    }
  }
});

test('what would take half of the room is not remembered, and drives nothing out', () => {
  const cache = new GenerationalCache<number>(20);
  cache.set('a', 1, 1);
  cache.set('b', 2, 11);
  assert.equal(cache.get('b'), undefined);
  cache.set('c', 3, 9);
  assert.equal(cache.get('c'), 3);
  assert.equal(cache.get('a'), 1);
  cache.grow('c', 2);
  assert.equal(cache.get('c'), undefined);
  assert.equal(cache.get('a'), 1);
});

test('with no room nothing is remembered', () => {
  const cache = new GenerationalCache<number>(0);
  cache.set('a', 1, 1);
  assert.equal(cache.get('a'), undefined);
  assert.equal(cache.bytes, 0);
});

test('a generation that grew past its half leaves no room for another half', () => {
  const cache = new GenerationalCache<number>(36);
  cache.set('a', 1, 5);
  cache.set('b', 2, 3);
  cache.grow('a', 11);
  cache.set('c', 3, 18);
  assert.ok(cache.bytes <= 36, `${cache.bytes}`);
  assert.equal(cache.get('c'), 3);
});

test('its bound holds however entries grow, and it never tells a wrong value', () => {
  const step = fc.record({
    what: fc.constantFrom('get', 'set', 'grow'),
    key: fc.string({ maxLength: 2, unit: fc.constantFrom('a', 'b', 'c') }),
    bytes: fc.integer({ min: 1, max: 20 }),
  });
  fc.assert(
    fc.property(fc.nat(60), fc.array(step, { maxLength: 200 }), (maxBytes, steps) => {
      const cache = new GenerationalCache<string>(maxBytes);
      const bytesOf = new Map<string, number>();
      for (const { what, key, bytes } of steps) {
        const found = what === 'grow' ? undefined : cache.get(key);
        assert.ok(found === undefined || found === `value of ${key}`);
        // As its users do: only what is not there is set.
        if (what === 'set' && found === undefined) {
          cache.set(key, `value of ${key}`, bytes);
          bytesOf.set(key, bytes);
        }
        if (what === 'grow') {
          cache.grow(key, bytes);
          bytesOf.set(key, (bytesOf.get(key) ?? 0) + bytes);
        }
        assert.ok(cache.bytes <= maxBytes, `${cache.bytes} of ${maxBytes}`);
      }
      let sum = 0;
      for (const [key, bytes] of bytesOf) if (cache.get(key) !== undefined) sum += bytes;
      assert.ok(sum <= maxBytes, `${sum} of ${maxBytes}`);
    }),
  );
});
