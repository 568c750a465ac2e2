import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { migrationsFolder } from '../../../test/support/migrations-folder.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { openWriteConnection } from './connection.ts';
import { migrate } from './migrate.ts';

const FILES = readdirSync(join(import.meta.dirname, 'migrations'))
  .filter((name) => name.endsWith('.sql'))
  .sort();

/** Everything that the tables are made of, and which files were applied when. */
const schema = (db: DatabaseSync) =>
  db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all();
const applied = (db: DatabaseSync) =>
  db.prepare('SELECT name, applied_at FROM migrations ORDER BY rowid').all() as {
    name: string;
    applied_at: number;
  }[];

test('a fresh database gets every file once, in order', () => {
  using db = new DatabaseSync(':memory:');
  const before = Date.now();
  migrate(db);
  assert.deepEqual(
    applied(db).map(({ name }) => name),
    FILES,
  );
  for (const { applied_at } of applied(db)) assert.ok(applied_at >= before && applied_at <= Date.now());
  assert.equal(db.isTransaction, false);
  db.exec("INSERT INTO users (name, email) VALUES ('a', 'a@b')");
});

test('a second run changes nothing', () => {
  using db = new DatabaseSync(':memory:');
  migrate(db);
  db.exec("INSERT INTO users (name, email) VALUES ('a', 'a@b')");
  const before = [schema(db), applied(db)];
  migrate(db);
  assert.deepEqual([schema(db), applied(db)], before);
  assert.equal(db.prepare('SELECT count(*) AS n FROM users').get()?.n, 1);
});

test('a file that fails leaves a database with tables of others as it was, and no transaction', async () => {
  await using folder = await migrationsFolder({
    '001-good.sql': 'CREATE TABLE t (a INTEGER NOT NULL) STRICT;',
    '002-half.sql': 'INSERT INTO t VALUES (1); CREATE TABLE u (a); INSERT INTO t VALUES (NULL);',
  });
  using db = new DatabaseSync(':memory:');
  db.exec('CREATE TABLE mine (a)');
  const before = schema(db);
  assert.throws(() => migrate(db, { folder: folder.url }), /NOT NULL constraint failed/);
  assert.deepEqual(schema(db), before);
  assert.equal(db.isTransaction, false);
});

const beginnings = {
  'no file': undefined,
  'an empty file': '',
  // Nothing is written before the files are compared, so a lock that is taken late would come too late.
  'a file with the table of migrations':
    'CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT',
};

for (const [name, sql] of Object.entries(beginnings)) {
  test(`connections that start together on ${name} take turns`, async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'test.db');
    if (sql !== undefined) {
      using first = openWriteConnection(file);
      first.exec(sql);
    }
    const count = 3;
    const gate = new SharedArrayBuffer(4);
    const threads = Array.from({ length: count }, () => migrateInThread({ file, gate, count }));
    assert.deepEqual(await Promise.all(threads), Array(count).fill('migrated'));
    using db = openWriteConnection(file);
    assert.deepEqual(
      applied(db).map(({ name }) => name),
      FILES,
    );
  });
}

/** Migrates in a thread of its own, once `count` threads are ready; gives what went wrong, if anything did. */
function migrateInThread(workerData: object): Promise<unknown> {
  const modules = ['./connection.ts', './migrate.ts'].map((path) => import.meta.resolve(path));
  const worker = new Worker(START_TOGETHER, { eval: true, workerData: { ...workerData, modules } });
  return new Promise((resolve) => worker.once('message', resolve).once('error', resolve));
}

const START_TOGETHER = `
  const { parentPort, workerData: { file, gate, count, modules } } = require('node:worker_threads');
  (async () => {
    const [{ openWriteConnection }, { migrate }] = await Promise.all(modules.map((url) => import(url)));
    const ready = new Int32Array(gate);
    if (Atomics.add(ready, 0, 1) + 1 === count) Atomics.notify(ready, 0);
    for (let seen; (seen = Atomics.load(ready, 0)) < count; ) Atomics.wait(ready, 0, seen);
    const db = openWriteConnection(file);
    migrate(db);
    db.close();
    parentPort.postMessage('migrated');
  })().catch((error) => parentPort.postMessage(String(error)));
`;
