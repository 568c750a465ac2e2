import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { packTexts } from './list-sql.ts';
import { StatementTime } from './statement-time.ts';

const BOUNDS = { maxBytes: 1_000, atOnce: false, time: 100 };

test('a page of texts ends after the row that uses up its time, also if none has a text', () => {
  let now = 0;
  function* rows() {
    for (let key = 1; key < 1_000; key++) {
      now += 30;
      yield [null, key];
    }
  }
  const page = packTexts(rows(), BOUNDS, () => now);
  assert.deepEqual([page.looked, page.count, page.last, page.isCut], [4, 0, [4], true]);
});

test('a page of texts ends before a row that takes too long; only a row that does so alone fails', () => {
  using db = new DatabaseSync(':memory:');
  db.exec('CREATE TABLE n (k INTEGER PRIMARY KEY); INSERT INTO n VALUES (1), (2), (3), (4)');
  const time = new StatementTime(db);
  const keys: unknown[] = [];
  db.function('slow', (key) => {
    keys.push(key);
    // The time of the statement is over.
    if (key === 3) time.begin(-1);
    time.check();
    return 't';
  });
  const read = (after: number) => {
    const statement = db.prepare('SELECT slow(k), k FROM n WHERE k > ? ORDER BY k');
    statement.setReturnArrays(true);
    time.begin(60_000);
    const rows = statement.iterate(after) as unknown as Iterable<readonly unknown[]>;
    return packTexts(rows, { ...BOUNDS, time: 60_000 });
  };
  const page = read(0);
  assert.deepEqual([String(page.bytes), page.last, page.isCut], ['tt', [2], true]);
  assert.throws(() => read(2), /took too long/);
  assert.deepEqual([String(read(3).bytes), keys], ['t', [1, 2, 3, 3, 4]]);
});
