import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { openReader, type Read } from './reader.ts';

const WAIT = 'The read failed: Too many long reads wait for the database';
const unavailable = (message: string | RegExp) => ({ name: 'StoreUnavailableError', message });

const read = (text: string, ...values: readonly (string | number | null)[]): Read => ({ text, values });
/** Counts to a number, which takes a while. */
const count = (to: number) =>
  read(
    'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT count(*) FROM n',
    to,
  );
const page = (users: number) =>
  read(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     SELECT i, 'name ' || i, NULL, '{"id":' || i || '}', 'state' FROM n`,
    users,
  );

async function open() {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder());
  const file = join(folder.path, 'a.db');
  const db = cleanup.use(new DatabaseSync(file));
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x)');
  const reader = cleanup.use(openReader(file));
  const all = cleanup.move();
  return { db, reader, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

test('rows come column by column, and show what is committed', async () => {
  await using opened = await open();
  const { db, reader } = opened;
  assert.deepEqual(await reader.rows(read('SELECT x FROM t')), []);
  db.exec(`INSERT INTO t VALUES (1), ('ä'), (NULL), (x'ff')`);
  assert.deepEqual(await reader.rows(read('SELECT x, ? FROM t', 'y')), [
    [1, 'y'],
    ['ä', 'y'],
    [null, 'y'],
    [Uint8Array.of(0xff), 'y'],
  ]);
});

test('a page has its users as bytes in the order of the list, and the keys of both ends', async () => {
  await using opened = await open();
  const { reader } = opened;
  const forwards = await reader.page(page(4), 3, false);
  assert.equal(Buffer.from(forwards.json).toString(), '{"id":1},{"id":2},{"id":3}');
  assert.deepEqual(
    [forwards.first, forwards.last, forwards.count, forwards.more, forwards.state],
    [[1, 'name 1', null], [3, 'name 3', null], 3, true, 'state'],
  );
  const backwards = await reader.page(page(2), 3, true);
  assert.equal(Buffer.from(backwards.json).toString(), '{"id":2},{"id":1}');
  assert.deepEqual([backwards.first, backwards.more], [[2, 'name 2', null], false]);
  const none = await reader.page(read('SELECT 1 WHERE false'), 3, false);
  assert.deepEqual([none.json.length, none.count, none.first, none.state], [0, 0, undefined, undefined]);
});

test('a read that fails says why, and the others go on', async () => {
  await using opened = await open();
  const { reader } = opened;
  const failing = reader.rows(read('SELECT * FROM nowhere'));
  const after = reader.rows(read('SELECT 1'));
  await assert.rejects(failing, unavailable(/no such table: nowhere/));
  assert.deepEqual(await after, [[1]]);
  await assert.rejects(reader.page(read('INSERT INTO t VALUES (1)'), 1, false), unavailable(/readonly/));
});

test('the event loop goes on while a read takes long', async () => {
  await using opened = await open();
  let turns = 0;
  const done = opened.reader.rows(count(2_000_000)).finally(() => {
    turns = -turns;
  });
  while (turns >= 0 && turns < 1_000) {
    turns++;
    await new Promise(setImmediate);
  }
  assert.deepEqual(await done, [[2_000_000]]);
  assert.ok(Math.abs(turns) > 10, `${turns} turns`);
});

test('when too many wait, further ones are refused', async () => {
  await using opened = await open();
  const { reader } = opened;
  const all = Array.from({ length: 110 }, () =>
    reader.rows(count(1_000)).then(
      () => 'read',
      ({ message }: Error) => message,
    ),
  );
  const outcomes = await Promise.all(all);
  assert.deepEqual(outcomes, [...Array(101).fill('read'), ...Array(9).fill(WAIT)]);
});

test('pieces of exports take turns with the other reads, and each goes on behind the row looked at last', async () => {
  await using opened = await open();
  const { db, reader } = opened;
  db.exec('CREATE TABLE n (k INTEGER PRIMARY KEY); INSERT INTO n VALUES (1), (2), (3)');
  const told: string[] = [];
  // None of the rows has a text, and each uses up the time of a piece.
  const bounds = { maxBytes: 1_000, atOnce: false, time: -1 };
  const exported = async (name: string) => {
    for (let last = 0; ; ) {
      const page = await reader.texts(read('SELECT NULL, k FROM n WHERE k > ? ORDER BY k', last), bounds);
      told.push(`${name}${page.last?.[0] ?? ''}`);
      if (!page.isCut) return;
      last = Number(page.last?.[0]);
    }
  };
  const other = async (name: string) => {
    await reader.rows(read('SELECT 1'));
    told.push(name);
  };
  await Promise.all([
    ...['a', 'b', 'c'].map(exported),
    ...Array.from({ length: 6 }, (_, i) => other(String(i))),
  ]);
  const expected = 'a1 0 b1 1 c1 2 a2 3 b2 4 c2 5 a3 b3 c3 a b c';
  assert.equal(told.join(' '), expected);
});

test('a reader that is closed ends what runs and refuses what waits', async () => {
  await using opened = await open();
  const { reader } = opened;
  const running = reader.rows(count(100_000));
  const waiting = reader.rows(count(10));
  await Promise.all([reader[Symbol.asyncDispose](), assert.rejects(waiting, unavailable(/closed/))]);
  assert.deepEqual(await running, [[100_000]]);
  await assert.rejects(reader.rows(count(1)), unavailable(/closed/));
});
