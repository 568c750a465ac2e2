import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DeliveryIds } from './delivery-ids.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The time in an id, in milliseconds since 1970. */
function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 13).replace('-', ''), 16);
}

test('whatever the clock does, each id is a UUID of version 7 that is larger than the one before', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constant(0), fc.integer({ min: -5, max: 5 }), fc.integer()), { maxLength: 300 }),
      (steps) => {
        let now = 1_700_000_000_000;
        const ids = new DeliveryIds();
        let last = '';
        for (const step of steps) {
          now = Math.max(1, now + step);
          const id = ids.next(now);
          assert.match(id, UUID_V7);
          assert.ok(id > last, `${id} after ${last}`);
          assert.ok(timeOf(id) >= now);
          last = id;
        }
      },
    ),
  );
});

test('a millisecond that is full borrows from the next one', () => {
  const ids = new DeliveryIds();
  const made = Array.from({ length: 20_000 }, () => ids.next(1_000));
  assert.deepEqual(made.toSorted(), made);
  assert.equal(timeOf(made[0] ?? ''), 1_000);
  assert.ok(timeOf(made.at(-1) ?? '') <= 1_000 + 20_000 / 2_048);
});

test('two that make ids at the same time make different ones', () => {
  const all = [new DeliveryIds(), new DeliveryIds()];
  const made = all.flatMap((ids) => Array.from({ length: 10_000 }, () => ids.next(1_000)));
  assert.equal(new Set(made).size, made.length);
  assert.equal(new Set(made.map((id) => id.slice(19, 20))).size, 4, 'all variants');
});
