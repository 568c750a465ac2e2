import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { migrate } from '../sqlite/migrate.ts';
import { APPEND_WRITES, APPENDS } from './append.ts';
import { steadyClock } from './inbox.ts';
import { JOB_WRITES } from './settle.ts';

const START = 1_700_000_000_000;
const HOUR = 3_600_000;

/** A clock over a wall clock and a steady one that the test sets. */
function clocks() {
  const at = { wall: START, steady: 50 };
  const now = steadyClock(
    () => at.wall,
    () => at.steady,
  );
  const pass = (milliseconds: number) => {
    at.wall += milliseconds;
    at.steady += milliseconds;
    return now() - START;
  };
  return { at, now, pass };
}

test('a clock that is set back goes on, and one that is set forwards is followed', () => {
  const { at, pass } = clocks();
  assert.equal(pass(10), 10);
  at.wall -= HOUR;
  assert.equal(pass(5), 15);
  assert.equal(pass(5), 20);
  at.wall += 2 * HOUR;
  assert.equal(pass(0), 20 + HOUR);
  assert.equal(pass(5), 25 + HOUR);
});

test('a wall clock that runs slower is waited for, so that small differences do not add up', () => {
  const { at, now } = clocks();
  let previous = now();
  for (let i = 0; i < 10_000; i++) {
    at.steady += 10.01;
    at.wall += 10;
    assert.ok(now() >= previous);
    previous = now();
  }
  assert.equal(now(), at.wall);
});

// A table of its own in each statement, such as for an IN with more than two values, costs several microseconds.
test('what stores a delivery, its job and an attempt builds no tables', () => {
  using db = new DatabaseSync(':memory:');
  migrate(db);
  for (const text of [APPENDS.appendDelivery[0], APPEND_WRITES.addJob, JOB_WRITES.recordAttempt]) {
    const steps = db.prepare(`EXPLAIN ${text}`).all();
    const opened = steps.filter(({ opcode }) => /^Open(Ephemeral|Autoindex)$/.test(String(opcode)));
    assert.deepEqual(opened, [], text);
  }
});
