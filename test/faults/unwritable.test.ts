import assert from 'node:assert/strict';
import { chmod, chown, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fillDisk, openSmallDisk, withoutSmallDisk } from '../support/broken-machine.ts';
import { IMMUTABLE_FOLDER, makeImmutable, withoutImmutable } from '../support/immutable.ts';
import { AS_NOBODY, NOBODY, withoutOtherUser } from '../support/other-user.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const env = { INTERFACES: 'rest,management', MANAGEMENT_DISK_THRESHOLD_BYTES: '1' };

interface Health {
  readonly status: string;
  readonly components: Readonly<Record<string, { readonly status: string; readonly details?: object }>>;
}

async function create({ urls }: PorticoProcess): Promise<number> {
  const reply = await fetch(`${urls.rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
  await reply.text();
  return reply.status;
}

async function writerOf({ urls }: PorticoProcess) {
  const reply = await fetch(`${urls.management}/actuator/health`);
  const { components } = (await reply.json()) as Health;
  const ready = await fetch(`${urls.management}/readyz`);
  await ready.text();
  return { code: reply.status, ready: ready.status, ...components.writer };
}

/** Waits until health says that nothing can be written, without any write of a client. */
async function becomesUnwritable(portico: PorticoProcess, error: RegExp): Promise<void> {
  const { code, details } = await waitFor('the writer to be DOWN', async () => {
    const writer = await writerOf(portico);
    return writer.status === 'DOWN' && writer;
  });
  assert.equal(code, 503);
  assert.match(JSON.stringify(details), error);
  assert.equal(await create(portico), 503);
}

/** Waits until health is as it was; a create agrees. */
async function becomesWritable(portico: PorticoProcess): Promise<void> {
  await waitFor('the writer to be UP', async () => (await writerOf(portico)).status === 'UP');
  assert.equal(await create(portico), 200);
}

test('a full disk is noticed before anybody writes, and so is that there is room again', {
  skip: withoutSmallDisk(),
}, async () => {
  await using disk = await openSmallDisk(2 ** 20);
  const start = () =>
    startPortico({
      cwd: disk.path,
      outside: disk.outside,
      env: { ...env, DATABASE_URL: `sqlite:${join(disk.path, 'portico.db')}` },
      wrapper: disk.wrapper,
    });
  {
    // Makes the tables: the log of that has room for more, in which small writes succeed on a full disk.
    await using first = start();
    await first.ready();
    first.child.kill('SIGTERM');
    assert.equal(await first.exited(), 0);
  }
  await using portico = start();
  await portico.ready();
  await becomesWritable(portico);
  const filler = await fillDisk(disk);
  await becomesUnwritable(portico, /disk is full/);
  await rm(filler);
  await becomesWritable(portico);
});

test('a write-ahead log that nobody may write to is noticed', { skip: withoutImmutable() }, async () => {
  await using folder = await temporaryFolder(IMMUTABLE_FOLDER);
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  await becomesWritable(portico);
  {
    using _immutable = makeImmutable(join(folder.path, 'portico.db-wal'));
    await becomesUnwritable(portico, /disk I\/O error/);
  }
  await becomesWritable(portico);
});

test('files that are made read-only are written on, because they are open: health says what a write would get', {
  skip: withoutOtherUser(),
}, async () => {
  await using folder = await temporaryFolder();
  await chown(folder.path, NOBODY, NOBODY);
  const start = () => startPortico({ cwd: folder.path, env, wrapper: AS_NOBODY });
  await using portico = start();
  await portico.ready();
  // The writing connection is open then.
  assert.equal(await create(portico), 200);
  for (const part of ['', '-wal', '-shm']) await chmod(join(folder.path, `portico.db${part}`), 0o444);
  // Longer than a result lives.
  const end = performance.now() + 2_500;
  while (performance.now() < end) assert.equal((await writerOf(portico)).status, 'UP');
  assert.equal(await create(portico), 200);
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  await using next = start();
  assert.equal(await next.exited(), 1);
  assert.match(next.stderr, /portico\.db is not writable, not even for its owner nobody\. Run "chmod u\+rw/);
});
