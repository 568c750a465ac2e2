import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, chown, mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { migrateDatabase } from '../../src/sql/open.ts';
import { fillDisk, openSmallDisk, type SmallDisk, withoutSmallDisk } from '../support/broken-machine.ts';
import { makeImmutable, withoutImmutable } from '../support/immutable.ts';
import { AS_NOBODY, NOBODY, withoutOtherUser } from '../support/other-user.ts';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const KILOBYTE = 1024;

/** Starts a service on a database that it cannot use; resolves to what it says. */
async function refusal(file: string, wrapper: readonly string[] = []): Promise<string> {
  await using portico = startPortico({
    cwd: wrapper.includes('nsenter') ? '/' : dirname(dirname(file)),
    env: { DATABASE_URL: `sqlite:${file}` },
    wrapper,
  });
  assert.equal(await portico.exited(), 1, portico.stderr + portico.stdout);
  assert.ok(!portico.stdout.includes('"ready"'));
  const begin = `portico: The database ${file} cannot be opened: `;
  assert.ok(portico.stderr.startsWith(begin), portico.stderr);
  return portico.stderr.slice(begin.length).trimEnd();
}

/** A folder with a folder `data` and a database in it, all of which belong to a user. */
async function database(user: number) {
  const folder = await temporaryFolder();
  const data = join(folder.path, 'data');
  const file = join(data, 'app.db');
  await mkdir(data);
  await migrateDatabase(`sqlite:${file}`);
  if (user !== process.getuid?.())
    for (const path of [folder.path, data, file]) await chown(path, user, user);
  return { data, file, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

test('a missing folder, a folder, a file in between and a file that is no database are told apart', async () => {
  await using folder = await temporaryFolder();
  const data = join(folder.path, 'data');
  assert.equal(
    await refusal(join(data, 'app.db')),
    `the folder ${data} does not exist. Create it, or name another path.`,
  );
  await mkdir(data);
  assert.equal(await refusal(data), `${data} is a folder. Name a file, such as ${join(data, 'portico.db')}.`);
  const text = join(data, 'text');
  await writeFile(text, 'this is not a database, however long the text may be');
  assert.equal(await refusal(join(text, 'app.db')), `${text} is not a folder. Name another path.`);
  assert.equal(
    await refusal(text),
    'the file is not an SQLite database. Name another file, or move this one away.',
  );
  assert.deepEqual(await readdir(data), ['text'], 'nothing was made');
});

/** As another user than root, who may write everywhere; the tests of an ordinary user run as that one. */
const ordinary =
  process.getuid?.() === 0 ? { uid: NOBODY, wrapper: AS_NOBODY } : { uid: process.getuid?.() ?? 0 };
const withoutOrdinary = process.getuid?.() === 0 ? withoutOtherUser() : false;

test('a file and a folder that their owner may not write to', { skip: withoutOrdinary }, async () => {
  await using own = await database(ordinary.uid);
  await chmod(own.file, 0o444);
  const unwritable = await refusal(own.file, ordinary.wrapper);
  assert.match(
    unwritable,
    /^(\S+app\.db) is not writable, not even for its owner \S+\. Run "chmod u\+rw \1"\.$/,
  );
  assert.deepEqual(await readdir(own.data), ['app.db'], 'nothing was made');
  await chmod(own.file, 0o644);
  await chmod(own.data, 0o555);
  assert.match(
    await refusal(own.file, ordinary.wrapper),
    /^(\S+data) is not writable, not even for its owner \S+\. Run "chmod u\+rwx \1"\.$/,
  );
});

test('a file and a folder of another user: both users are named', { skip: withoutOtherUser() }, async () => {
  await using other = await database(0);
  const { data, file } = other;
  await chmod(dirname(data), 0o755);
  const runs = 'belongs to root, and this process runs as nobody, who may not write to it.';
  assert.equal(
    await refusal(file, AS_NOBODY),
    `${file} ${runs} Run "chown nobody ${file}", or start as root.`,
  );
  await chown(file, NOBODY, NOBODY);
  assert.equal(
    await refusal(file, AS_NOBODY),
    `${data} ${runs} Give nobody the folder with "chown", or name a file in another one.`,
  );
  await chmod(dirname(data), 0o700);
  assert.equal(
    await refusal(file, AS_NOBODY),
    `nobody may not enter the folders above ${data}. Allow that, or name another path.`,
  );
});

test('an immutable file', { skip: withoutImmutable() }, async () => {
  await using own = await database(process.getuid?.() ?? 0);
  using _immutable = makeImmutable(own.file);
  assert.equal(
    await refusal(own.file),
    `${own.file} is immutable. Run "chattr -i ${own.file}", or name another path.`,
  );
});

/** A small disk with a database on it. */
async function diskWithDatabase(): Promise<readonly [SmallDisk, string]> {
  const disk = await openSmallDisk(1_024 * KILOBYTE);
  await using portico = startPortico({
    cwd: '/',
    args: ['migrate'],
    env: { DATABASE_URL: `sqlite:${join(disk.path, 'app.db')}` },
    wrapper: disk.wrapper,
  });
  assert.equal(await portico.exited(), 0);
  return [disk, join(disk.path, 'app.db')];
}

test('a full disk, for a database that is there and for a new one', {
  skip: withoutSmallDisk(),
}, async () => {
  const [disk, file] = await diskWithDatabase();
  await using _disk = disk;
  await fillDisk(disk);
  const full = `the disk is full. Free some space in ${disk.path}.`;
  assert.equal(await refusal(file, disk.wrapper), full);
  assert.equal(await refusal(join(disk.path, 'new.db'), disk.wrapper), full);
});

test('a file system that is mounted read-only', { skip: withoutSmallDisk() }, async () => {
  const [disk, file] = await diskWithDatabase();
  await using _disk = disk;
  const [command, ...words] = [...disk.wrapper, 'mount', '-o', 'remount,ro', disk.path];
  execFileSync(command ?? '', words);
  const readOnly =
    'is on a file system that is mounted read-only. Mount it for writing, or name another path.';
  assert.equal(await refusal(file, disk.wrapper), `${file} ${readOnly}`);
  assert.equal(await refusal(join(disk.path, 'new.db'), disk.wrapper), `${disk.path} ${readOnly}`);
});
