import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { StoreUnavailableError } from '../../core/errors.ts';
import { unobserved } from '../batch-queue.ts';
import { openReadConnection, openWriteConnection } from '../sqlite/connection.ts';
import { migrate } from '../sqlite/migrate.ts';
import { SQLITE_WRITES } from '../sqlite/writes.ts';
import type { Row } from './batch.ts';
import { openInlineWriter, openThreadWriter, type Writer } from './writer.ts';

interface Opened extends AsyncDisposable {
  readonly writer: Writer;
  readonly fatal: readonly StoreUnavailableError[];
  /** The thread behind the writer. */
  readonly thread: Worker;
}

/** A migrated file for the writers of one test. */
async function migratedFile(): Promise<
  AsyncDisposable & { readonly path: string; names(): readonly unknown[] }
> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'test.db');
  using db = openWriteConnection(path);
  migrate(db);
  return {
    path,
    names() {
      using reads = openReadConnection(path);
      return reads
        .prepare('SELECT name FROM users ORDER BY id')
        .all()
        .map(({ name }) => name);
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

async function openThread(file: string, observer = unobserved): Promise<Opened> {
  const fatal: StoreUnavailableError[] = [];
  const started = once(process, 'worker');
  const writer = openThreadWriter(file, { onFatal: (error) => void fatal.push(error), observer });
  const [thread] = (await started) as [Worker];
  return { writer, fatal, thread, [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose]() };
}

const create = ({ queue }: Writer, name: string) => queue.write('createUser', name, 'a@b', 1);
const unavailable = (message: RegExp) => (error: unknown) =>
  error instanceof StoreUnavailableError && message.test(error.message);

test('a write of the thread is visible to other connections at once, and after a reopen', async () => {
  await using file = await migratedFile();
  {
    await using opened = await openThread(file.path);
    assert.deepEqual(
      (await create(opened.writer, 'a')).map((row) => [...row]),
      [[1]],
    );
    assert.deepEqual(file.names(), ['a']);
    await Promise.all(Array.from({ length: 50 }, (_, i) => create(opened.writer, `b${i}`)));
    assert.deepEqual(opened.fatal, []);
  }
  assert.equal(file.names().length, 51);
  await using again = await openThread(file.path);
  assert.deepEqual(
    (await create(again.writer, 'c')).map((row) => [...row]),
    [[52]],
  );
});

test('disposing waits for the writes that were accepted, refuses later ones, and is no failure', async () => {
  await using file = await migratedFile();
  const { writer, fatal } = await openThread(file.path);
  const writes = Array.from({ length: 20 }, (_, i) => create(writer, `${i}`));
  const disposing = writer[Symbol.asyncDispose]();
  assert.equal((await Promise.all(writes)).length, 20);
  await disposing;
  await assert.rejects(create(writer, 'late'), unavailable(/closed/));
  assert.equal(file.names().length, 20);
  assert.deepEqual(fatal, []);
});

test('a background write is committed behind those that wait, whichever came first', async () => {
  await using file = await migratedFile();
  await using opened = await openThread(file.path);
  const { writer } = opened;
  const ended: string[] = [];
  const nextTick = () => new Promise((resolve) => setImmediate(resolve));
  // The lock keeps the thread busy until all have been posted.
  using other = new DatabaseSync(file.path);
  other.exec('BEGIN IMMEDIATE');
  const writes = [create(writer, 'under way')];
  await nextTick();
  const step = writer.background.write('prune', 'ended', 1, 0).then(() => ended.push('background'));
  await nextTick();
  for (let i = 0; i < 16; i++) writes.push(create(writer, `${i}`));
  await nextTick();
  const all = Promise.all(writes).then(() => ended.push('writes'));
  other.exec('ROLLBACK');
  await Promise.all([step, all]);
  assert.deepEqual(ended, ['writes', 'background']);
  assert.equal(file.names().length, 17);
});

test('a write that is wrong by itself fails, and the thread goes on', async () => {
  await using file = await migratedFile();
  await using opened = await openThread(file.path);
  const { queue } = opened.writer;
  const writes = await Promise.allSettled([
    create(opened.writer, 'a'),
    queue.write('createUser', null, 'a@b', 1),
    create(opened.writer, 'b'),
  ]);
  assert.deepEqual(
    writes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(file.names(), ['a', 'b']);
  assert.deepEqual(opened.fatal, []);
});

test('a dead thread fails current and later writes, and reports it once', {
  timeout: 300_000,
}, async () => {
  await using file = await migratedFile();
  await using opened = await openThread(file.path);
  const { writer, thread, fatal } = opened;
  await create(writer, 'acknowledged');
  // The lock keeps the write under way until the thread has been told to end.
  using other = new DatabaseSync(file.path);
  other.exec('BEGIN IMMEDIATE');
  const underWay = create(writer, 'under way');
  await new Promise((resolve) => setImmediate(resolve));
  const waiting = create(writer, 'waiting');
  const refused = Promise.all([
    assert.rejects(underWay, StoreUnavailableError),
    assert.rejects(waiting, unavailable(/writer thread/)),
  ]);
  const ended = thread.terminate();
  other.exec('ROLLBACK');
  await ended;
  await refused;
  await assert.rejects(create(writer, 'late'), unavailable(/writer thread/));
  assert.deepEqual(file.names(), ['acknowledged']);
  assert.equal(fatal.length, 1);
  assert.ok(fatal[0] instanceof StoreUnavailableError);
});

test('a thread that cannot open its file fails the first write, and disposing does not hang', {
  timeout: 300_000,
}, async () => {
  await using folder = await temporaryFolder();
  await using opened = await openThread(join(folder.path, 'no/such/folder/test.db'));
  const write = create(opened.writer, 'a');
  await assert.rejects(write, StoreUnavailableError);
  await waitFor('the failure to be told', () => opened.fatal.length > 0);
  await assert.rejects(create(opened.writer, 'b'), unavailable(/unable to open|writer thread/));
  assert.equal(opened.fatal.length, 1);
});

test('a writer on the thread of its caller does the same on its connection', async () => {
  using db = new DatabaseSync(':memory:');
  migrate(db);
  const fatal: StoreUnavailableError[] = [];
  const writer = openInlineWriter(db, SQLITE_WRITES, (error) => fatal.push(error), unobserved);
  const writes = [create(writer, 'a'), create(writer, 'b')];
  const disposing = writer[Symbol.asyncDispose]();
  await Promise.all(writes);
  await disposing;
  await assert.rejects(create(writer, 'late'), unavailable(/closed/));
  assert.equal(db.prepare('SELECT count(*) AS n FROM users').get()?.n, 2);
  assert.deepEqual(fatal, []);
});

/** How many transactions the log of a file holds: the last frame of each says how large the file is (sqlite.org/fileformat2.html, 4.1). */
function transactionsIn(log: string): number {
  const bytes = readFileSync(log);
  const frame = 24 + bytes.readUInt32BE(8);
  let count = 0;
  for (let at = 32; at + frame <= bytes.length; at += frame) if (bytes.readUInt32BE(at + 4) !== 0) count++;
  return count;
}

test('batches that come while another one is under way are one transaction, and each write has its own answer', async () => {
  await using file = await migratedFile();
  const commits: (readonly [writes: number, failed: number])[] = [];
  const batch = (writes: number, failed: number) => void commits.push([writes, failed]);
  await using opened = await openThread(file.path, { ...unobserved, batch });
  await create(opened.writer, 'first');
  const before = transactionsIn(`${file.path}-wal`);
  using other = openWriteConnection(file.path);
  other.exec('BEGIN IMMEDIATE');
  const batches: Promise<PromiseSettledResult<readonly Row[]>[]>[] = [];
  for (let batch = 0; batch < 4; batch++) {
    const writes = Array.from({ length: 20 }, (_, i) =>
      i === 7
        ? opened.writer.queue.write('createUser', null, 'a@b', 1)
        : create(opened.writer, `${batch}-${i}`),
    );
    batches.push(Promise.allSettled(writes));
    await nextTurn();
  }
  other.exec('ROLLBACK');
  for (const [batch, settled] of (await Promise.all(batches)).entries()) {
    for (const [i, result] of settled.entries()) {
      assert.equal(result.status === 'rejected', i === 7, `${batch}-${i}`);
      if (result.status === 'fulfilled')
        assert.deepEqual([...(result.value[0] ?? [])], [2 + batch * 19 + i - (i > 7 ? 1 : 0)]);
    }
  }
  assert.equal(file.names().length, 1 + 4 * 19);
  // The thread may be late for the first batch, and then has all four at once.
  const [, ...merged] = commits;
  assert.equal(transactionsIn(`${file.path}-wal`) - before, merged.length);
  assert.ok(merged.length <= 2, JSON.stringify(commits));
  assert.deepEqual(sumOf(merged), [80, 4]);
});

function sumOf(commits: readonly (readonly [number, number])[]): readonly number[] {
  return commits.reduce(([writes, failed], commit) => [writes + commit[0], failed + commit[1]], [0, 0]);
}
