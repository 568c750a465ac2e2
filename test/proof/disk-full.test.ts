import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { appendFile, cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fillDisk, openSmallDisk, type SmallDisk, withoutSmallDisk } from '../support/broken-machine.ts';
import { startPortico } from '../support/portico-process.ts';
import { control, earlyAcknowledgement } from '../support/source-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { DiskProbe } from './disk/probe.ts';
import { readStore } from './kill/store-reader.ts';
import { relations } from './rows/declaration.ts';

const skip = withoutSmallDisk();
const MEGABYTE = 2 ** 20;

/** Writes until a write is refused. */
async function writeUntilRefused(write: () => Promise<boolean>): Promise<void> {
  for (let count = 0; await write(); count++) assert.ok(count < 1_000, 'the disk never gets full');
}

/** Copies a database out of the namespace of its disk: SQLite does not find its way through it. */
async function readCopy(disk: SmallDisk, probe: DiskProbe): Promise<void> {
  await using folder = await temporaryFolder();
  await cp(disk.outside, folder.path, { recursive: true });
  using store = readStore(join(folder.path, 'portico.db'));
  store.checkIntegrity();
  probe.check(store.content());
}

function startOn({ path, outside, wrapper }: SmallDisk, main?: string) {
  return startPortico({
    cwd: path,
    outside,
    env: {
      INTERFACES: 'rest,webhook,management',
      DATABASE_URL: `sqlite:${join(path, 'portico.db')}`,
      MANAGEMENT_DISK_THRESHOLD_BYTES: String(64 * 1024),
    },
    wrapper,
    ...(main !== undefined && { main }),
  });
}

/** A disk becomes full, by others or by the program's own data; later there is room again. */
async function fillAndFree(byOthers: boolean, main?: string): Promise<void> {
  await using disk = await openSmallDisk(8 * MEGABYTE);
  const database = join(disk.outside, 'portico.db');
  const filler = join(disk.outside, 'filler');
  await writeFile(join(disk.outside, 'portico.config.json'), JSON.stringify({ relations }));
  await appendFile(filler, Buffer.alloc(6 * MEGABYTE));
  {
    // Else the log would have the room that the migrations took.
    await using first = startOn(disk, main);
    await first.ready();
    first.child.kill('SIGTERM');
    assert.equal(await first.exited(), 0);
  }
  {
    await using portico = startOn(disk, main);
    await portico.ready();
    const probe = new DiskProbe(portico);
    for (let i = 0; i < 4; i++) assert.ok(await probe.create());
    assert.ok(await probe.remove());
    for (let i = 0; i < 20; i++) assert.ok(await probe.writeRows());
    assert.ok(await probe.deliver(100));
    await probe.healthIs({ whole: 'UP' });

    if (byOthers) {
      await fillDisk(disk);
      assert.equal(await probe.create(), false);
      assert.equal(await probe.update(), false);
      assert.equal(await probe.deliver(10_000), false, 'a delivery is refused');
      const all = await Promise.all(Array.from({ length: 20 }, () => probe.deliver(4_000)));
      assert.ok(!all.includes(true));
      assert.equal(await probe.remove(), false);
      assert.equal(await probe.writeRows(), false);
      await probe.healthIs({ whole: 'DOWN', writer: 'DOWN', db: 'UP' });
    } else {
      // The log gives room back now and then, when it is folded into the file.
      for (const size of [60_000, 8_000, 0]) await writeUntilRefused(() => probe.deliver(size));
      await writeUntilRefused(() => probe.create());
      await writeUntilRefused(() => probe.update());
      await writeUntilRefused(() => probe.writeRows());
    }
    await probe.checkReads();

    await rm(filler);
    assert.ok(await probe.create(), 'there is room again');
    assert.ok(await probe.update());
    for (let i = 0; i < 20; i++) assert.ok(await probe.writeRows());
    assert.ok(await probe.deliver(10_000));
    assert.ok(await probe.remove());
    await probe.healthIs({ whole: 'UP' });
    await probe.checkReads();
    await waitFor('all deliveries to be handled', () => {
      const handled = portico.logs().filter(({ msg }) => msg === 'commit notification processed');
      return new Set(handled.map(({ delivery }) => delivery)).size === probe.acknowledgedDeliveries;
    });
    portico.child.kill('SIGKILL');
    await portico.exited();
    await readCopy(disk, probe);
  }
  await using next = startOn(disk, main);
  await next.ready();
  next.child.kill('SIGTERM');
  assert.equal(await next.exited(), 0);
  assert.ok(!existsSync(`${database}-wal`), 'the log is folded into the file');
}

test('a disk that others fill: writes are refused, reads go on, and all is well once there is room', {
  skip,
}, async () => {
  await fillAndFree(true);
});

test('a disk that deliveries fill: writes are refused, reads go on, and all is well once there is room', {
  skip,
}, async () => {
  await fillAndFree(false);
});

control('a program that acknowledges before it commits is found out on a full disk', {
  edits: [earlyAcknowledgement],
  skip,
  find: (main) => assert.rejects(fillAndFree(true, main), /a delivery is refused/),
});
