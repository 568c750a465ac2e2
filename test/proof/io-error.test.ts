import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { attachStrace, withoutStrace } from '../support/broken-machine.ts';
import { startPortico } from '../support/portico-process.ts';
import { inFull, proofCount } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { DiskProbe } from './disk/probe.ts';
import { readStore } from './kill/store-reader.ts';

const skip = withoutStrace();
const ENV = { CONFIG: join(import.meta.dirname, 'rows/declaration.ts') };

/** Calls of one kind fail: the n-th one of each thread, or with a plus that and all later ones. */
const failing = (calls: string, error: string, when: string) => [
  ...['-e', `trace=${calls}`],
  ...['-e', `inject=${calls}:error=${error}:when=${when}`],
];

/** So many calls take place at the least while a few writes are stored. */
const SURE = 8;
// PORTICO_PROOF_CALLS: up to which call each one fails.
const CALLS = proofCount('PORTICO_PROOF_CALLS', 10, 3);
/** Of the calls of a first start: the first ones, and every so many of those after. */
const [FIRST, EVERY] = inFull ? [8, 3] : [3, 9];

const ERRORS = { EIO: CALLS, ENOSPC: Math.ceil(CALLS / 2), EROFS: Math.ceil(CALLS / 2) };

for (const [error, calls] of Object.entries(ERRORS)) {
  test(`${error} at any write, once and for a while: no false success, and no restart is needed`, {
    skip,
  }, async () => {
    await using folder = await temporaryFolder();
    await using portico = startPortico({
      cwd: folder.path,
      env: { ...ENV, INTERFACES: 'rest,webhook,management' },
    });
    await portico.ready();
    const probe = new DiskProbe(portico);
    for (let i = 0; i < 30; i++) assert.ok(await probe.create());
    for (let n = 1; n <= calls; n++) {
      for (const when of [`${n}`, `${n}+`]) {
        {
          await using _faults = await attachStrace(portico.child.pid ?? 0, failing('pwrite64', error, when));
          const writes = [
            await probe.create(),
            await probe.deliver(500),
            await probe.update(),
            await probe.remove(),
            await probe.writeRows(),
          ];
          if (n <= SURE) assert.ok(writes.includes(false), `${when}: a write was refused`);
          if (when.endsWith('+') && n <= SURE) {
            await probe.healthIs({ whole: 'DOWN', writer: 'DOWN' });
          }
          await probe.checkReads();
        }
        assert.ok(await probe.create(), `${when}: the next write is stored`);
        assert.ok(await probe.deliver(500));
        for (let i = 0; i < 3; i++) assert.ok(await probe.writeRows());
        await probe.healthIs({ whole: 'UP' });
      }
    }
    portico.child.kill('SIGKILL');
    await portico.exited();
    using store = readStore(join(folder.path, 'portico.db'));
    store.checkIntegrity();
    probe.check(store.content());
  });
}

test('errors of reading are 503 or nobody sees them, and they leave nothing behind', { skip }, async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({
    cwd: folder.path,
    env: { ...ENV, INTERFACES: 'rest,webhook,management' },
  });
  await portico.ready();
  const probe = new DiskProbe(portico);
  for (let i = 0; i < 30; i++) assert.ok(await probe.create());
  let refused = 0;
  for (let n = 1; n <= (inFull ? 6 : 3); n++) {
    {
      await using _faults = await attachStrace(portico.child.pid ?? 0, failing('pread64', 'EIO', `${n}+`));
      await probe.create();
      const list = await fetch(`${portico.urls.rest}/users`);
      if (list.status === 503) {
        refused++;
        assert.equal(await list.text(), '{"status":"error","message":"Service Unavailable"}');
      } else assert.equal(list.status, 200);
      await probe.deliver(500);
    }
    await probe.checkReads();
    assert.ok(await probe.create());
  }
  assert.ok(refused > 0, 'a read failed');
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  using store = readStore(join(folder.path, 'portico.db'));
  store.checkIntegrity();
  probe.check(store.content());
});

test('a sync that fails while the log is folded ends the process; what was acknowledged is there', {
  skip,
}, async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  await using portico = startPortico({ cwd: folder.path, env: { ...ENV, INTERFACES: 'rest,webhook' } });
  await portico.ready();
  const probe = new DiskProbe(portico);
  for (let i = 0; i < 20; i++) assert.ok(await probe.writeRows());
  assert.ok(await probe.create());
  {
    // Only those of the database file: the log itself is synced as ever.
    const words = ['-P', file, ...failing('fsync,fdatasync', 'EIO', '1+')];
    await using _faults = await attachStrace(portico.child.pid ?? 0, words);
    await waitFor('a write to be refused', async () => !(await probe.deliver(500_000).catch(() => false)));
    assert.equal(await portico.exited(), 1);
  }
  assert.ok(probe.acknowledgedDeliveries >= 4);

  await using next = startPortico({ cwd: folder.path, env: { ...ENV, INTERFACES: 'rest,webhook' } });
  await next.ready();
  next.child.kill('SIGTERM');
  assert.equal(await next.exited(), 0);
  using store = readStore(file);
  store.checkIntegrity();
  probe.check(store.content());
});

/** Which calls of a first start fail, and how many of them there are at the most. */
const STARTS: readonly (readonly [string, string, number])[] = [
  ['pwrite64', 'EIO', 40],
  ['pwrite64', 'ENOSPC', 20],
  ['fsync,fdatasync', 'EIO', 12],
  ['ftruncate', 'EIO', 2],
];

for (const [calls, error, count] of STARTS) {
  test(`a first start in which any ${calls} fails (${error}) says so, and the next one goes well`, {
    skip,
  }, async () => {
    const script = join(import.meta.dirname, 'disk/open-and-create.ts');
    let failures = 0;
    for (let n = 1; n <= count; n += n < FIRST ? 1 : EVERY) {
      await using folder = await temporaryFolder();
      const words = ['-f', '--seccomp-bpf', '-o', '/dev/null', ...failing(calls, error, `${n}`)];
      const { status, stdout, stderr } = spawnSync('strace', [...words, process.execPath, script], {
        cwd: folder.path,
        encoding: 'utf8',
      });
      const created = stdout === 'created';
      if (status === 0) assert.ok(created);
      else {
        failures++;
        assert.match(stderr, /cannot be opened: |The write failed: |no longer durable: /);
      }

      const file = join(folder.path, 'portico.db');
      await using database = await openDatabase(`sqlite:${file}`);
      const page = await database.users.page('json', 0, 10);
      if (created) assert.equal(page.count, 1, 'what was acknowledged is there');
      assert.ok((await database.users.create({ name: 'next', email: 'a@b' })) > 0);
      using store = readStore(file);
      store.checkIntegrity();
    }
    assert.ok(failures > 0, 'some starts failed');
  });
}
