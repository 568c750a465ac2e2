import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { lockForService, serviceFiles } from './service-lock.ts';

const run = promisify(execFile);
const IN_USE = /another service runs on it: process \d+ on /;

async function databaseIn(path: string): Promise<string> {
  const file = join(path, 'test.db');
  writeFileSync(file, '');
  return file;
}

test('a lock excludes the next one until it is disposed of, and then leaves nothing', async () => {
  await using folder = await temporaryFolder();
  const file = await databaseIn(folder.path);
  for (let i = 0; i < 3; i++) {
    using _lock = lockForService(file);
    assert.throws(() => lockForService(file), IN_USE);
  }
  assert.deepEqual(readdirSync(folder.path), ['test.db']);
});

test('a second attempt in one process does not give the lock away', async () => {
  await using folder = await temporaryFolder();
  const file = await databaseIn(folder.path);
  using _lock = lockForService(file);
  assert.throws(() => lockForService(file), IN_USE);
  await assert.rejects(compete(file, 'lockForService(file);'), IN_USE);
});

test('the files have the owner and the mode of the database', async () => {
  await using folder = await temporaryFolder();
  const file = await databaseIn(folder.path);
  rmSync(file);
  writeFileSync(file, '', { mode: 0o620 });
  using _lock = lockForService(file);
  const { uid, mode } = statSync(file);
  for (const each of serviceFiles(file)) {
    assert.deepEqual([statSync(each).uid, statSync(each).mode], [uid, mode], each);
  }
});

test('a lock whose file somebody has removed does not remove that of the next one', async () => {
  await using folder = await temporaryFolder();
  const file = await databaseIn(folder.path);
  const lock = lockForService(file);
  for (const each of serviceFiles(file)) rmSync(each);
  const next = compete(
    file,
    `lockForService(file);
    globalThis.gc();
    await new Promise((end) => process.stdin.on('end', end).resume());`,
  );
  try {
    await waitFor('the other lock', () => existsSync(serviceFiles(file)[1]));
    lock[Symbol.dispose]();
    for (const each of serviceFiles(file)) assert.ok(existsSync(each), each);
    assert.throws(() => lockForService(file), IN_USE);
  } finally {
    next.child.stdin?.end();
  }
  await next;
});

/** Takes and gives back the lock time and again; fails when somebody else has it as well. */
const COMPETITOR = `
  for (let held = 0; held < 200; ) {
    let lock;
    try { lock = lockForService(file); } catch (error) {
      if (!/another service runs on it/.test(error.message)) throw error;
      continue;
    }
    closeSync(openSync(file + '-alone', 'wx'));
    held++;
    rmSync(file + '-alone');
    lock[Symbol.dispose]();
  }
`;

test('processes that take and give back the lock all the time never have it together', async () => {
  await using folder = await temporaryFolder();
  const file = await databaseIn(folder.path);
  await Promise.all(Array.from({ length: 4 }, () => compete(file, COMPETITOR)));
});

/** Runs a script in a process of its own; rejects with what it says when it fails. */
function compete(file: string, script: string) {
  const module = JSON.stringify(new URL('./service-lock.ts', import.meta.url).href);
  const text = `
    import { openSync, closeSync, rmSync } from 'node:fs';
    import { lockForService } from ${module};
    const [file] = process.argv.slice(1);
    ${script}`;
  return run(process.execPath, ['--expose-gc', '--input-type=module', '-e', text, file]);
}
