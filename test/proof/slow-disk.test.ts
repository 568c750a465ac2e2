import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { attachStrace, withoutStrace } from '../support/broken-machine.ts';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { DiskProbe } from './disk/probe.ts';
import { readStore } from './kill/store-reader.ts';

test('while a disk takes its time over a sync, writes wait and all else goes on; then they are acknowledged', {
  skip: withoutStrace(),
}, async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest,webhook,management' } });
  await portico.ready();
  const probe = new DiskProbe(portico);
  for (let i = 0; i < 20; i++) assert.ok(await probe.create());

  const writes: Promise<boolean>[] = [];
  let answered = 0;
  {
    // Each sync begins only when the tracer lets go of it.
    const held = ['-e', 'trace=fsync,fdatasync', '-e', 'inject=fsync,fdatasync:delay_enter=600s'];
    await using _slow = await attachStrace(portico.child.pid ?? 0, held);
    for (let i = 0; i < 20; i++) {
      for (const write of [probe.create(), probe.deliver(500)]) {
        writes.push(write);
        write.finally(() => answered++).catch(() => {});
      }
      await probe.checkReads();
    }
    assert.equal(answered, 0, 'no write is acknowledged before it is synced');
  }
  assert.ok((await Promise.all(writes)).every((acknowledged) => acknowledged));
  assert.equal((await probe.health()).whole, 'UP');
  portico.child.kill('SIGKILL');
  await portico.exited();
  using store = readStore(join(folder.path, 'portico.db'));
  probe.check(store.content());
});
