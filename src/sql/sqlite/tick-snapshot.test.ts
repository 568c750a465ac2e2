import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { openReadConnection, openWriteConnection } from './connection.ts';
import { TickSnapshot } from './tick-snapshot.ts';

async function open() {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'a.db');
  const writes = openWriteConnection(file);
  writes.exec('CREATE TABLE numbers (n INTEGER)');
  const reads = openReadConnection(file);
  const checkpoint = { waits: false };
  const snapshot = new TickSnapshot(reads, () => checkpoint.waits);
  const count = reads.prepare('SELECT count(*) AS n FROM numbers');
  return {
    reads,
    snapshot,
    checkpoint,
    write: () => writes.exec('INSERT INTO numbers VALUES (1)'),
    read() {
      snapshot.enter();
      return count.get()?.n;
    },
    async [Symbol.asyncDispose]() {
      reads.close();
      writes.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

test('the reads of a tick share a transaction from the second on, and it ends with the tick', async () => {
  await using db = await open();
  for (let turn = 0; turn < 3; turn++) {
    db.read();
    assert.equal(db.reads.isTransaction, false, 'a lone read begins none');
    db.read();
    assert.equal(db.reads.isTransaction, true);
    db.read();
    await nextTurn();
    assert.equal(db.reads.isTransaction, false);
  }
});

test('a read after a commit that is acknowledged sees it, in the same tick too', async () => {
  await using db = await open();
  for (let written = 0; written < 20; written++) {
    for (let i = 0; i < 3; i++) assert.equal(db.read(), written);
    db.write();
    db.snapshot.refresh();
    assert.equal(db.read(), written + 1);
    if (written % 3 === 0) await nextTurn();
  }
});

test('while a checkpoint waits, each read is a transaction of its own', async () => {
  await using db = await open();
  db.checkpoint.waits = true;
  for (let i = 0; i < 3; i++) {
    db.read();
    assert.equal(db.reads.isTransaction, false);
  }
  db.checkpoint.waits = false;
  db.read();
  assert.equal(db.reads.isTransaction, true);
  await nextTurn();
});

test('a connection that was closed in mid-tick is left alone', async () => {
  await using db = await open();
  db.read();
  db.read();
  db.reads.close();
  db.snapshot.enter();
  await nextTurn();
  db.snapshot.refresh();
  db.reads.open();
});
