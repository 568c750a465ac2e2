import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { backupName, backupsIn, writeBackup } from '../../src/sql/backup/backup.ts';
import { restoreBackup } from '../../src/sql/backup/restore.ts';
import { ScheduledBackups } from '../../src/sql/backup/scheduled.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const NEVER = new AbortController().signal;
const PLAN = { every: 60_000, keep: 2 };
const PADDING = 'n'.repeat(500);

async function openUsers(folder: string, count: number) {
  const file = join(folder, 'portico.db');
  const database = openDatabase(`sqlite:${file}`);
  const users = Array.from({ length: count }, (_, i) => ({ name: PADDING, email: `${i}@example.org` }));
  await Promise.all(users.map((user) => database.users.create(user)));
  return { file, database };
}

test('a copy is that of one moment, and writes are acknowledged while it is made', async () => {
  await using folder = await temporaryFolder();
  const { file, database } = await openUsers(folder.path, 6_000);
  await using _closed = database;
  const to = join(folder.path, 'copy.db');
  let acknowledged = 0;
  let writing = Promise.resolve();
  let steps = 0;
  const report = await writeBackup(file, to, {
    live: true,
    signal: NEVER,
    onCopy(step, done, total) {
      if (step !== 'copy' || done === total) return;
      steps++;
      writing = writing.then(async () => {
        await database.users.create({ name: 'Late', email: 'late@example.org' });
        acknowledged++;
      });
    },
  });
  assert.ok(steps > 2, 'it is made in steps');
  await writing;
  assert.equal(acknowledged, steps);
  assert.equal(report.rows.users, 6_000);
  using copy = new DatabaseSync(to, { readOnly: true, timeout: 5_000 });
  assert.deepEqual(
    { ...copy.prepare('SELECT max(id) AS last, count(*) AS count FROM users').get() },
    {
      last: 6_000,
      count: 6_000,
    },
  );
  assert.deepEqual(
    readdirSync(folder.path).filter((name) => name.startsWith('copy')),
    ['copy.db'],
  );
});

test('an interrupted backup leaves nothing under its name', async () => {
  await using folder = await temporaryFolder();
  const { file, database } = await openUsers(folder.path, 3_000);
  await using _closed = database;
  const interrupt = new AbortController();
  const backup = writeBackup(file, join(folder.path, 'copy.db'), {
    live: true,
    signal: interrupt.signal,
    onCopy: () => interrupt.abort(new Error('enough')),
  });
  await assert.rejects(backup, /enough/);
  assert.deepEqual(
    readdirSync(folder.path).filter((name) => name.startsWith('copy')),
    [],
  );
});

test('a damaged database makes no backup', async () => {
  await using folder = await temporaryFolder();
  const { file, database } = await openUsers(folder.path, 3_000);
  await database[Symbol.asyncDispose]();
  using damaging = new DatabaseSync(file);
  const { page_size: size } = damaging.prepare('PRAGMA page_size').get() as { page_size: number };
  const { rootpage } = damaging.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'users'`).get() as {
    rootpage: number;
  };
  damaging.close();
  const { open } = await import('node:fs/promises');
  await using handle = await open(file, 'r+');
  // The order of the cells of the table's root page, behind its header.
  await handle.write(Buffer.alloc(16, 0xff), 0, 16, (rootpage - 1) * size + 12);
  const to = join(folder.path, 'copy.db');
  await assert.rejects(writeBackup(file, to, { live: false, signal: NEVER, onCopy() {} }), /damaged/);
  assert.deepEqual(
    readdirSync(folder.path).filter((name) => name.startsWith('copy')),
    [],
  );
});

test('damage that no read of all rows meets makes no backup either', async () => {
  await using folder = await temporaryFolder();
  const { file, database } = await openUsers(folder.path, 3_000);
  await database[Symbol.asyncDispose]();
  const size = 4_096;
  const bytes = readFileSync(file);
  const pages = Array.from({ length: bytes.length / size }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
  // A leaf of the users' table with several rows: two of them change places.
  const leaf = pages.findLast(
    (page, i) => i > 0 && page[0] === 0x0d && page.readUInt16BE(3) > 1 && page.includes('@example.org'),
  );
  assert.ok(leaf !== undefined);
  const first = leaf.readUInt16BE(8);
  leaf.writeUInt16BE(leaf.readUInt16BE(10), 8);
  leaf.writeUInt16BE(first, 10);
  writeFileSync(file, bytes);
  const to = join(folder.path, 'copy.db');
  await assert.rejects(
    writeBackup(file, to, { live: false, signal: NEVER, onCopy() {} }),
    /damaged: .*out of order/s,
  );
});

test('scheduled backups are made when they are due, the oldest go, and a failing one is told', async () => {
  await using folder = await temporaryFolder();
  const { file, database } = await openUsers(folder.path, 1);
  await using _closed = database;
  const entries: unknown[] = [];
  const log = { info: () => {}, error: (entry: unknown) => entries.push(entry) };
  const target = join(folder.path, 'backups');
  const scheduled = (metrics: Metrics) =>
    new ScheduledBackups({ file, plan: { ...PLAN, folder: target }, log, metrics });
  using metrics = new Metrics();
  await using backups = scheduled(metrics);
  const status = async () => (await backups.health.check(NEVER)) as { status: string; details: object };
  const begin = Date.parse('2026-01-31T14:00:00Z');
  const names = () => backupsIn(target, file).map(({ at }) => (at - begin) / 1_000);

  // A process that was killed leaves what is no backup; another one may be at work.
  const partials = [-90_000, -60].map((seconds) => `${backupName(file, begin + seconds * 1_000)}.partial`);
  mkdirSync(target);
  for (const name of [...partials, 'other-2020-01-31T14-00-00Z.db']) writeFileSync(join(target, name), '');

  for (const seconds of [0, 59, 60, 90, 125]) await backups.backUpWhenDue(begin + seconds * 1_000);
  assert.deepEqual(names(), [60, 125]);
  const others = readdirSync(target).filter(
    (name) => !backupsIn(target, file).some(({ path }) => path.endsWith(name)),
  );
  assert.deepEqual(others, ['other-2020-01-31T14-00-00Z.db', partials[1]]);
  // A restart knows the last one by its name.
  using more = new Metrics();
  await using again = scheduled(more);
  await again.backUpWhenDue(begin + 130_000);
  assert.deepEqual(names(), [60, 125]);
  // A clock that was set back.
  await again.backUpWhenDue(begin + 10_000);
  assert.deepEqual(names(), [60, 125], 'of those that are kept, the name decides');
  assert.equal((await status()).status, 'UP');

  writeFileSync(join(target, backupName(file, begin + 300_000)), '');
  await backups.backUpWhenDue(begin + 300_000);
  assert.equal(entries.length, 1);
  const { status: failed, details } = await status();
  assert.equal(failed, 'DOWN');
  assert.match(JSON.stringify(details), /The file .* already exists.*"failedAt":"2026-01-31T14:05:00.000Z"/);
  const series = [...(metrics.meter('database.backups')?.series() ?? [])];
  const outcomes = series.map((each) => [each.tags[0]?.value, each.measure()[0]?.value]);
  assert.deepEqual(outcomes.toSorted(), [
    ['completed', 3],
    ['failed', 1],
  ]);
  await backups.backUpWhenDue(begin + 330_000);
  assert.equal(entries.length, 1, 'not before its time');
  await backups.backUpWhenDue(begin + 360_000);
  assert.equal((await status()).status, 'UP');
});

test('a damaged database is kept with its WAL, in which commits may still be found', async () => {
  await using folder = await temporaryFolder();
  const { file, database } = await openUsers(folder.path, 10);
  const to = join(folder.path, 'damaged.db');
  {
    await using _closed = database;
    for (const part of ['', '-wal']) copyFileSync(file + part, to + part);
  }
  writeFileSync(to, 'x'.repeat(8_192));
  const wal = readFileSync(`${to}-wal`);
  assert.ok(wal.length > 0);
  const { kept = '' } = await restoreBackup(file, to, { onCopy: () => {}, signal: NEVER });
  assert.equal(readFileSync(kept, 'utf8'), 'x'.repeat(8_192));
  assert.ok(readFileSync(`${kept}-wal`).equals(wal));
});

test('no service starts on the file that a backup is being restored to', async () => {
  await using folder = await temporaryFolder();
  const { file, database } = await openUsers(folder.path, 10);
  await database[Symbol.asyncDispose]();
  const to = join(folder.path, 'new.db');
  let tries = 0;
  await restoreBackup(file, to, {
    signal: NEVER,
    onCopy() {
      tries++;
      assert.throws(() => openDatabase(`sqlite:${to}`, { forService: true }), /another service runs on it/);
    },
  });
  assert.ok(tries > 0);
  await using restored = openDatabase(`sqlite:${to}`, { forService: true });
  assert.match(String(await restored.users.readJson(10)), /"id":10/);
});
