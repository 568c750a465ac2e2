import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openReadConnection, openWriteConnection, WAL_LIMIT } from '../sqlite/connection.ts';
import { openSqlite } from '../sqlite/open.ts';
import { Checkpointer, type HeldWal, rewriteWal } from './checkpointer.ts';

/** Keeps the event loop for a duration in milliseconds. */
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** One that counts the frames of a WAL, if this Node has it, and one that cannot. */
const VERSIONS = [process.versions.sqlite ?? '', '3.50.4'];

for (const sqlite of VERSIONS)
  describe(`checkpointer on SQLite ${sqlite}`, () => {
    const counts = Number(sqlite.split('.')[1]) >= 52;

    /** A database of its own with a checkpointer, and a clock that the test sets. */
    async function open() {
      const folder = await temporaryFolder();
      const file = join(folder.path, 'a.db');
      const db = openWriteConnection(file);
      db.exec('CREATE TABLE texts (text TEXT)');
      const insert = db.prepare('INSERT INTO texts VALUES (?)');
      const wal = () => statSync(`${file}-wal`).size;
      const waits = new Int32Array(new SharedArrayBuffer(4));
      const notices: HeldWal[] = [];
      const clock = { now: 0, read: 0, onRead: () => {} };
      /** How long statements waited for locks, in milliseconds, whenever the clock was read. */
      const timeouts = new Set<unknown>();
      const timeout = () => db.prepare('PRAGMA busy_timeout').get()?.timeout;
      const checkpointer = new Checkpointer(db, {
        waits,
        sqlite,
        walBytes: wal,
        onFatal: assert.fail,
        onHeld: (held) => notices.push(held),
        now() {
          clock.read++;
          timeouts.add(timeout());
          clock.onRead();
          return clock.now;
        },
      });
      const write = (text = 'x'.repeat(100_000)) => {
        insert.run(text);
        checkpointer.maintain();
      };
      const count = db.prepare('PRAGMA wal_checkpoint(NOOP)');
      return {
        db,
        write,
        wal,
        /** Asserts that the WAL has begun again, and that its file is at most `most` bytes long. */
        assertShort(most: number) {
          if (!counts) return assert.equal(wal(), WAL_LIMIT);
          assert.ok(Number(count.get()?.log) < 10);
          assert.ok(wal() <= most, `${wal()}`);
        },
        notices,
        clock,
        timeouts,
        timeout,
        /** Size of the database without its WAL. */
        size: () => statSync(file).size,
        readsMustYield: () => waits[0] === 1,
        writeUntil(bytes: number) {
          while (wal() <= bytes) write();
        },
        /** A read transaction that sees what is there now. */
        reader() {
          const reader = openReadConnection(file);
          reader.exec('BEGIN; SELECT count(*) FROM texts');
          return reader;
        },
        async [Symbol.asyncDispose]() {
          await checkpointer[Symbol.asyncDispose]();
          db.close();
          await folder[Symbol.asyncDispose]();
        },
      };
    }

    test('a WAL that has outgrown its limit goes into the database, and the file becomes short again', async () => {
      await using opened = await open();
      const { assertShort, size, write, writeUntil, readsMustYield } = opened;
      const small = size();
      writeUntil(WAL_LIMIT - 200_000);
      await nextTurn();
      assert.deepEqual([size(), readsMustYield()], [small, false], 'a short one is left alone');
      writeUntil(WAL_LIMIT);
      assert.equal(readsMustYield(), true);
      await waitFor('the checkpoint', () => !readsMustYield());
      assert.ok(size() > 0.9 * WAL_LIMIT);
      write('the next commit');
      assertShort(2.1 * WAL_LIMIT);
      assert.equal(readsMustYield(), false, 'the WAL is not taken for as long as its file');
    });

    test('commits without a pause do not keep a WAL from its checkpoint', async () => {
      await using opened = await open();
      const { size, write } = opened;
      // No timer ends in this loop.
      for (let n = 0; size() < WAL_LIMIT && n < 10_000; n++) write();
      assert.ok(size() >= WAL_LIMIT);
    });

    test('commits wait for a WAL that grows faster than the thread copies it', async () => {
      await using opened = await open();
      const { assertShort, clock, db, write, readsMustYield } = opened;
      const long = 'x'.repeat(5 * WAL_LIMIT);
      // While the result of the thread is read, more comes than it has copied.
      clock.onRead = () => {
        if (clock.read === 1) db.prepare('INSERT INTO texts VALUES (?)').run(long.repeat(3));
      };
      write(long);
      await waitFor('the checkpoint', () => !readsMustYield());
      assert.equal(clock.read, 2, 'the thread is not asked again');
      write('the next commit');
      assertShort(4 * WAL_LIMIT);
    });

    test('a checkpoint that a reader keeps from its end is tried again until it comes there, without a write', async () => {
      await using opened = await open();
      const { assertShort, reader, size, write, writeUntil } = opened;
      write('before');
      {
        using early = reader();
        writeUntil(2 * WAL_LIMIT);
        await waitFor('a checkpoint that stops at the reader', () => opened.clock.read > 0);
        assert.ok(size() < 100_000);
        assert.equal(early.prepare('SELECT count(*) AS n FROM texts').get()?.n, 1);
      }
      await waitFor('the rest of it', () => size() > 1.8 * WAL_LIMIT);
      await waitFor('the moment without readers', () => !opened.readsMustYield());
      write('the next commit');
      assertShort(2.1 * WAL_LIMIT);
      assert.deepEqual([...opened.timeouts], [10], 'a checkpoint does not wait long for the reader');
      assert.equal(opened.timeout(), 5_000, 'other statements wait as before');
    });

    test('a reader that stays is told with its age, again when that has doubled, and holds up no read', async () => {
      await using opened = await open();
      const { clock, notices, reader, writeUntil, readsMustYield } = opened;
      /** Waits until the clock has been looked at by two more checkpoints. */
      const checkpoints = async () => {
        const before = clock.read;
        await waitFor('further checkpoints', () => clock.read >= before + 2);
      };
      using early = reader();
      writeUntil(WAL_LIMIT);
      await checkpoints();
      clock.now = 9_999;
      await checkpoints();
      assert.equal(notices.length, 0);
      clock.now = 12_000;
      await waitFor('the notice', () => notices.length > 0);
      assert.deepEqual(notices[0], { heldMs: 12_000, bytes: opened.wal() });
      assert.equal(early.isTransaction, true);
      await waitFor('reads that are no longer asked to yield', () => !readsMustYield());
      clock.now = 20_000;
      await waitFor('the second notice', () => notices.length > 1);
      assert.equal(notices[1]?.heldMs, 20_000);
    });

    test('a WAL that has become very long is copied by one thread, while a transaction goes on', async (t) => {
      await using opened = await open();
      const { assertShort, db, reader, size, write, writeUntil, readsMustYield } = opened;
      const threads: Worker[] = [];
      const keep = (thread: Worker) => threads.push(thread);
      process.on('worker', keep);
      t.after(() => process.off('worker', keep));
      const listeners: unknown[] = [];
      for (const round of [1, 2]) {
        {
          using _early = reader();
          if (round === 1) {
            // The thread is asked while the reader is there, and more comes before its answer is read.
            write('x'.repeat(4.5 * WAL_LIMIT));
            block(100);
            write();
            block(500);
          }
          writeUntil(5 * WAL_LIMIT);
        }
        // The connection itself could not checkpoint now.
        db.exec('BEGIN IMMEDIATE');
        await waitFor('the copy', () => size() > 4.5 * round * WAL_LIMIT);
        db.exec('COMMIT');
        await waitFor('the moment without readers', () => !readsMustYield());
        write('the next commit');
        assertShort(4 * WAL_LIMIT);
        listeners.push(['message', 'error', 'exit'].map((name) => threads[0]?.listenerCount(name)));
      }
      assert.equal(threads.length, 1);
      assert.deepEqual(listeners[1], listeners[0]);
    });

    /** The longest WAL under a steady load of writes, and of reads in long ticks, in bytes. */
    async function longestWal(): Promise<number> {
      await using folder = await temporaryFolder();
      await using database = openSqlite(join(folder.path, 'a.db'));
      const name = 'n'.repeat(20_000);
      let longest = 0;
      let written = 0;
      while (written < 10 * WAL_LIMIT) {
        const writes = Array.from({ length: 16 }, () => database.users.create({ name, email: 'a@b' }));
        // The second read begins a transaction that lasts as long as the tick, longer than a checkpoint waits.
        for (const end = performance.now() + 15; performance.now() < end; ) database.users.read(1);
        await Promise.all(writes);
        written += 16 * name.length;
        longest = Math.max(longest, database.walBytes?.() ?? 0);
      }
      assert.ok(longest > WAL_LIMIT, `${longest}`);
      return longest;
    }

    test('under a steady load of writes, and of reads in long ticks, the WAL stays short', async () => {
      const tried: number[] = [];
      // Commits go on while another program keeps the checkpointer from its core.
      for (let i = 0; i < 5; i++) {
        const longest = await longestWal();
        if (longest <= 2 * WAL_LIMIT) return;
        tried.push(longest);
      }
      assert.fail(`longest WAL of each attempt: ${tried.join()}`);
    });
  });

describe('rewrite wal', () => {
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
});
