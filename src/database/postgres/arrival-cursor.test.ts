import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ArrivalCursor } from './arrival-cursor.ts';

/** Looks at the ids of `visible` as the follower does. */
function look(cursor: ArrivalCursor, visible: ReadonlySet<number>, limit: number, now: number): number[] {
  const come = cursor.missing.filter((id) => visible.has(id));
  const above = [...visible].filter((id) => id > cursor.last).sort((a, b) => a - b);
  const found = [...come.sort((a, b) => a - b), ...above.slice(0, limit)];
  return [...cursor.advance(found, now, now)];
}

test('a late id is new exactly once', () => {
  const cursor = new ArrivalCursor(10, [8], 0);
  assert.deepEqual([...cursor.advance([11, 14], 1, 2)], [11, 14]);
  assert.deepEqual(cursor.missing, [8, 12, 13]);
  assert.deepEqual([...cursor.advance([8, 13, 15], 3, 4)], [8, 13, 15]);
  assert.deepEqual(cursor.missing, [12]);
  assert.deepEqual([...cursor.advance([13], 5, 6)], []);
  assert.equal(cursor.last, 15);
});

test('a missing id expires in a poll that does not find it after the timeout', () => {
  const cursor = new ArrivalCursor(0, [], 0);
  cursor.advance([2], 0, 5);
  cursor.advance([], 30_005, 90_000);
  assert.deepEqual(cursor.missing, [1]);
  assert.deepEqual([...cursor.advance([1], 90_000, 90_001)], [1], 'it is found however late the look is');
  cursor.advance([4], 90_001, 90_002);
  cursor.advance([], 120_003, 120_004);
  assert.deepEqual(cursor.missing, []);
});

test('a jump of the ids costs no more than ten thousand', () => {
  const cursor = new ArrivalCursor(1, [], 0);
  cursor.advance([9_000_000_000], 0, 0);
  assert.equal(cursor.missing.length, 10_000);
  assert.equal(cursor.missing.at(-1), 8_999_999_999);
  cursor.advance([9_000_000_005], 1, 1);
  assert.equal(cursor.missing.length, 10_000);
  assert.equal(cursor.missing.at(-1), 9_000_000_004);
});

test('in whatever order ids become visible, each is new once, in order within a look', () => {
  const arrival = fc.record({ burst: fc.nat(5), hold: fc.nat(4), never: fc.boolean() });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), fc.integer({ min: 1, max: 7 }), (arrivals, limit) => {
      const cursor = new ArrivalCursor(0, [], 0);
      const visible = new Set<number>();
      const waiting: { readonly id: number; readonly at: number }[] = [];
      const told: number[] = [];
      let id = 0;
      let now = 0;
      const step = () => {
        now++;
        for (const one of waiting) if (one.at === now) visible.add(one.id);
        const fresh = look(cursor, visible, limit, now);
        assert.deepEqual(
          fresh,
          [...fresh].sort((a, b) => a - b),
        );
        told.push(...fresh);
      };
      for (const { burst, hold, never } of arrivals) {
        for (let i = 0; i < burst; i++) {
          id++;
          if (!never) waiting.push({ id, at: now + 1 + hold });
        }
        step();
      }
      for (let i = 0; i < 400; i++) step();
      assert.equal(new Set(told).size, told.length, 'none is told twice');
      assert.deepEqual(
        told.toSorted((a, b) => a - b),
        waiting.map((one) => one.id),
        'none is left out',
      );
    }),
  );
});
