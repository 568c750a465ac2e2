import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { openWriteConnection } from '../connection.ts';
import { rewriteWal } from './rewrite-wal.ts';

test('a rewritten WAL has the same bytes and the same content', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  using db = openWriteConnection(file);
  db.exec('CREATE TABLE t (a TEXT)');
  // More than is rewritten in one piece.
  for (let i = 0; i < 300; i++) db.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(4_000));
  const before = readFileSync(`${file}-wal`);
  assert.ok(before.length > 2 ** 20);
  rewriteWal(db);
  assert.ok(readFileSync(`${file}-wal`).equals(before));
  assert.equal(db.isTransaction, false);
  using reader = new DatabaseSync(file, { readOnly: true });
  assert.equal(reader.prepare('SELECT count(*) AS count FROM t').get()?.count, 300);
});

test('no connection can append to the WAL during the rewrite', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  using other = openWriteConnection(file);
  other.exec('BEGIN IMMEDIATE');
  using db = new DatabaseSync(file, { timeout: 0 });
  assert.throws(() => rewriteWal(db), /locked/);
  assert.equal(db.isTransaction, false);
});

test('without a log nothing is done', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  using db = new DatabaseSync(file);
  rewriteWal(db);
  assert.ok(!existsSync(`${file}-wal`));
});
