import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import type { WriteResult } from '../batch-queue.ts';
import { openWriteConnection } from '../sqlite/connection.ts';
import { migrate } from '../sqlite/migrate.ts';
import { SQLITE_WRITES } from '../sqlite/writes.ts';
import { BatchExecutor, type Step, type StepRows, type Write, type WriteRegistry } from './batch.ts';

const WRITES: WriteRegistry = {
  ...SQLITE_WRITES,
  statements: {
    ...SQLITE_WRITES.statements,
    updateUser: 'UPDATE users SET name = ?, email = ? WHERE id = ? RETURNING id',
    removeUser: 'DELETE FROM users WHERE id = ? RETURNING id',
  },
};

/** A database whose statements are counted as they are prepared. */
class CountingDatabase extends DatabaseSync {
  prepared = 0;

  override prepare(...args: Parameters<DatabaseSync['prepare']>) {
    this.prepared++;
    return super.prepare(...args);
  }
}

function open(setUp = '') {
  const db = new CountingDatabase(':memory:');
  migrate(db);
  db.exec(setUp);
  return db;
}

const create = (name: unknown, email: unknown = 'a@b') =>
  [{ statement: 'createUser', values: [name, email, 1] }] as unknown as Write;
const step = (statement: Step['statement'], ...values: Step['values']): Write => [{ statement, values }];
const names = (db: DatabaseSync) =>
  db
    .prepare('SELECT name FROM users ORDER BY id')
    .all()
    .map(({ name }) => name);
/** The rows of each step of a write; undefined when it failed. */
const rowsOf = (result: WriteResult<StepRows>) =>
  'rows' in result ? result.rows.map((rows) => rows.map((row) => [...row])) : undefined;
const isError = (result: WriteResult<StepRows> | undefined) => result !== undefined && 'error' in result;

test('each write gets its own rows, in the order of the writes', () => {
  using db = open();
  const executor = new BatchExecutor(db, WRITES);
  const { results, fatal } = executor.execute([
    create('a'),
    create('b'),
    step('updateUser', 'A', 'a@c', 1),
    step('removeUser', 99),
    step('removeUser', 2),
    create('c'),
  ]);
  assert.deepEqual(results.map(rowsOf), [[[[1]]], [[[2]]], [[[1]]], [[]], [[[2]]], [[[3]]]]);
  assert.equal(fatal, undefined);
  assert.deepEqual(names(db), ['A', 'c']);
  assert.equal(db.isTransaction, false);
});

test('the steps of a write see each other and happen all or none', () => {
  using db = open();
  const executor = new BatchExecutor(db, WRITES);
  const { results } = executor.execute([
    [...create('a'), ...step('updateUser', 'A', 'a@c', 1), ...create('b')],
    [...create('c'), ...step('updateUser', null, 'a@c', 1), ...create('d')],
    [...create('e'), ...create(null)],
    [...create('f')],
    [],
  ]);
  assert.deepEqual(results.map(rowsOf), [[[[1]], [[1]], [[2]]], undefined, undefined, [[[3]]], []]);
  assert.deepEqual(names(db), ['A', 'b', 'f']);
});

const bad: Readonly<Record<string, Write>> = {
  'a null where none may be': create(null),
  'a value of a kind that cannot be bound': create({ name: 'x' }),
  'a value too many': step('createUser', 'x', 'y', 1, 'z'),
  'a value too few': step('createUser', 'x'),
  'bytes for a column of texts': create(new Uint8Array([1])),
};

for (const [name, write] of Object.entries(bad)) {
  test(`${name} fails alone, and the rest is stored`, () => {
    using db = open();
    const executor = new BatchExecutor(db, WRITES);
    const { results, fatal } = executor.execute([create('before'), write, create('after')]);
    assert.deepEqual(results.map(isError), [false, true, false]);
    assert.equal(fatal, undefined);
    assert.deepEqual(names(db), ['before', 'after']);
    assert.equal(executor.execute([create('next')]).results.some(isError), false);
  });
}

test('the steps of a failed write are undone', () => {
  using db = open(`
    CREATE TRIGGER spread AFTER INSERT ON users WHEN new.name = 'bad' BEGIN
      UPDATE users SET email = 'changed@x';
      SELECT RAISE(FAIL, 'half done');
    END`);
  const { results } = new BatchExecutor(db, WRITES).execute([create('good'), create('bad'), create('fine')]);
  assert.deepEqual(results.map(isError), [false, true, false]);
  assert.deepEqual(
    db
      .prepare('SELECT name, email FROM users ORDER BY id')
      .all()
      .map(({ name, email }) => [name, email]),
    [
      ['good', 'a@b'],
      ['fine', 'a@b'],
    ],
  );
});

test('an error that ends the transaction fails the whole batch, and the next one works', () => {
  using db = open(`
    CREATE TRIGGER ending BEFORE INSERT ON users WHEN new.name = 'end' BEGIN
      SELECT RAISE(ROLLBACK, 'the transaction is gone');
    END`);
  const executor = new BatchExecutor(db, WRITES);
  const { results, fatal } = executor.execute([create('before'), create('end'), create('after')]);
  assert.deepEqual(results.map(isError), [true, true, true]);
  assert.match(
    results.map((result) => ('error' in result ? result.error : '')).join(),
    /the transaction is gone/,
  );
  assert.equal(fatal, undefined, 'the file is as durable as it was');
  assert.deepEqual(names(db), []);
  assert.deepEqual(executor.execute([create('next')]).results.map(isError), [false]);
  assert.deepEqual(names(db), ['next']);
});

test('a commit that fails fails every write, and leaves no transaction behind', () => {
  using db = open(`
    PRAGMA foreign_keys = ON;
    CREATE TABLE parents (id INTEGER PRIMARY KEY);
    CREATE TABLE children (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER orphan AFTER INSERT ON users WHEN new.name = 'orphan' BEGIN INSERT INTO children VALUES (1); END`);
  const executor = new BatchExecutor(db, WRITES);
  const { results, fatal } = executor.execute([create('a'), create('orphan')]);
  assert.deepEqual(results.map(isError), [true, true]);
  assert.equal(fatal, undefined);
  assert.equal(db.isTransaction, false);
  assert.deepEqual(names(db), []);
  assert.equal(executor.execute([create('b')]).results.some(isError), false);
});

test('a full disk fails new writes and keeps stored ones', () => {
  using db = open();
  const executor = new BatchExecutor(db, WRITES);
  executor.execute([create('kept')]);
  db.exec(`PRAGMA max_page_count = ${db.prepare('PRAGMA page_count').get()?.page_count}`);
  const { results, fatal } = executor.execute([create('a'.repeat(100_000)), create('b'.repeat(100_000))]);
  assert.deepEqual(results.map(isError), [true, true]);
  assert.equal(fatal, undefined);
  assert.deepEqual(names(db), ['kept']);
  db.exec('PRAGMA max_page_count = 100000');
  assert.deepEqual(executor.execute([create('again')]).results.map(isError), [false]);
});

test('a file that another process holds fails the batch, and it can be tried again', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  using db = openWriteConnection(file);
  migrate(db);
  db.exec('PRAGMA busy_timeout = 0');
  const executor = new BatchExecutor(db, WRITES);
  using other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  const { results, fatal } = executor.execute([create('a')]);
  assert.deepEqual(results.map(isError), [true]);
  assert.equal(fatal, undefined);
  other.exec('COMMIT');
  assert.deepEqual(executor.execute([create('a')]).results.map(isError), [false]);
});

test('an empty batch is no error', () => {
  using db = open();
  assert.deepEqual(new BatchExecutor(db, WRITES).execute([]), { results: [] });
});

test('an empty write reaches the WAL and changes nothing', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  using db = openWriteConnection(file);
  migrate(db);
  const executor = new BatchExecutor(db, WRITES);
  const before = statSync(`${file}-wal`).size;
  const state = () =>
    db.prepare('SELECT (SELECT count(*) FROM users) AS users, * FROM pragma_user_version').get();
  const was = state();
  assert.deepEqual(executor.execute([[]]).results.map(rowsOf), [[]]);
  assert.equal(statSync(`${file}-wal`).size, before + 4096 + 24, 'one page');
  assert.deepEqual(state(), was);
});

test('statements are prepared when the connection opens, and never again', () => {
  using db = open();
  const executor = new BatchExecutor(db, WRITES);
  const { prepared } = db;
  assert.ok(prepared > 0);
  for (let i = 0; i < 10; i++) executor.execute([create('a'), create(null), step('removeUser', i)]);
  assert.equal(db.prepared, prepared);
});

test('any batch stores the good writes and no other, whatever stands between them', () => {
  const write = fc.oneof(
    fc.string({ unit: 'grapheme' }).map((name) => ({ name, isGood: true })),
    fc.constantFrom(null, undefined, {}, new Uint8Array(1)).map((name) => ({ name, isGood: false })),
  );
  fc.assert(
    fc.property(fc.array(fc.array(write, { maxLength: 8 }), { maxLength: 4 }), (batches) => {
      using db = open();
      const executor = new BatchExecutor(db, WRITES);
      for (const batch of batches) {
        const { results } = executor.execute(batch.map(({ name }) => create(name)));
        assert.deepEqual(
          results.map(isError),
          batch.map(({ isGood }) => !isGood),
        );
      }
      const good = batches.flat().filter(({ isGood }) => isGood);
      assert.deepEqual(
        names(db),
        good.map(({ name }) => name),
      );
    }),
    { numRuns: 50 },
  );
});
