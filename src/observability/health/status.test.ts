import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { HealthStatus } from './health.ts';
import { aggregateStatus, isHealthStatus } from './status.ts';

const status = fc.constantFrom<HealthStatus>('UP', 'DOWN', 'OUT_OF_SERVICE', 'UNKNOWN');

test('nothing that is checked is well', () => {
  assert.equal(aggregateStatus([]), 'UP');
});

test('the worst part decides: DOWN, then OUT_OF_SERVICE, then UP, and UNKNOWN only when nothing else is known', () => {
  fc.assert(
    fc.property(fc.array(status, { minLength: 1, maxLength: 8 }), (statuses) => {
      const has = (wanted: HealthStatus) => statuses.includes(wanted);
      const expected = has('DOWN')
        ? 'DOWN'
        : has('OUT_OF_SERVICE')
          ? 'OUT_OF_SERVICE'
          : has('UP')
            ? 'UP'
            : 'UNKNOWN';
      assert.equal(aggregateStatus(statuses), expected);
    }),
  );
});

test('order and grouping do not matter, and the whole is one of its parts', () => {
  const parts = fc.array(status, { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(parts, parts, (some, more) => {
      const whole = aggregateStatus([...some, ...more]);
      assert.equal(aggregateStatus([...more, ...some].toReversed()), whole);
      assert.equal(aggregateStatus([aggregateStatus(some), aggregateStatus(more)]), whole);
      assert.ok([...some, ...more].includes(whole));
    }),
  );
});

test('only the four words are a status', () => {
  for (const word of ['UP', 'DOWN', 'OUT_OF_SERVICE', 'UNKNOWN']) assert.equal(isHealthStatus(word), true);
  for (const other of ['up', 'FINE', '', undefined, null, 0, {}, 'toString']) {
    assert.equal(isHealthStatus(other), false);
  }
});
