import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { StoreUnavailableError } from '../../core/errors.ts';
import {
  openExclusiveConnection,
  openReadConnection,
  openWriteConnection,
  PreparedStatements,
} from './connection.ts';
import { openSqlite } from './open.ts';

const pragma = (db: DatabaseSync, name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];

test('the writing connection syncs at every commit, into a write-ahead log that it folds back itself', async () => {
  await using folder = await temporaryFolder();
  using db = openWriteConnection(join(folder.path, 'test.db'));
  assert.equal(pragma(db, 'synchronous'), 2, 'FULL');
  assert.equal(pragma(db, 'journal_mode'), 'wal');
  assert.equal(pragma(db, 'wal_autocheckpoint'), 0);
  assert.equal(pragma(db, 'busy_timeout'), 5_000);
});

test('a file that somebody else left in another mode is brought to the log', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  new DatabaseSync(file).close();
  using before = new DatabaseSync(file);
  before.exec('PRAGMA journal_mode=DELETE; CREATE TABLE t (a); INSERT INTO t VALUES (1)');
  using db = openWriteConnection(file);
  assert.equal(pragma(db, 'journal_mode'), 'wal');
  assert.equal(pragma(db, 'synchronous'), 2);
});

test('the reading connection sees commits and cannot write', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  using writing = openWriteConnection(file);
  writing.exec('CREATE TABLE t (a)');
  using reading = openReadConnection(file);
  const count = reading.prepare('SELECT count(*) AS n FROM t');
  writing.exec('BEGIN; INSERT INTO t VALUES (1)');
  assert.equal(count.get()?.n, 0, 'it reads while the other writes');
  writing.exec('COMMIT');
  assert.equal(count.get()?.n, 1);
  assert.throws(() => reading.exec('INSERT INTO t VALUES (2)'), /readonly/);
  assert.equal(pragma(reading, 'busy_timeout'), 5_000);
});

test('a file that is not there is made for writing and refused for reading', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  assert.throws(() => openReadConnection(file), /unable to open/);
  openWriteConnection(file).close();
  openReadConnection(file).close();
});

test('a file that is no database is refused', async () => {
  assert.throws(() => openWriteConnection(import.meta.filename), /not a database/);
});

test('opening waits for a process that writes to a file without a log', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  const holder = new Worker(HOLD_WRITE_LOCK, { eval: true, workerData: { file } });
  const ended = once(holder, 'exit');
  await once(holder, 'message');
  try {
    using db = openWriteConnection(file);
    assert.equal(pragma(db, 'journal_mode'), 'wal');
  } finally {
    await ended;
  }
});

/** Takes the write lock of a file in rollback mode, says so, and lets go a little later. */
const HOLD_WRITE_LOCK = `
  const { DatabaseSync } = require('node:sqlite');
  const { parentPort, workerData } = require('node:worker_threads');
  const db = new DatabaseSync(workerData.file);
  db.exec('CREATE TABLE t (a); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)');
  parentPort.postMessage('held');
  setTimeout(() => { db.exec('COMMIT'); db.close(); }, 50);
`;

test('a database that cannot be opened leaves no connection open', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  await openSqlite(file)[Symbol.asyncDispose]();
  {
    using db = openWriteConnection(file);
    db.exec('DROP TABLE jobs');
  }
  assert.throws(() => openSqlite(file), /no such table: jobs/);
  await waitFor('the file to be free', () => {
    try {
      openExclusiveConnection(file).close();
      return true;
    } catch {
      return false;
    }
  });
});

test('a read on a closed connection fails as unavailable, also if its statement was never prepared', () => {
  const db = new DatabaseSync(':memory:');
  const statements = new PreparedStatements(db);
  assert.deepEqual(statements.read('SELECT ?, 2', [1]), [[1, 2]]);
  db.close();
  for (const text of ['SELECT ?, 2', 'SELECT ?'])
    assert.throws(() => statements.read(text, [1]), StoreUnavailableError);
});
