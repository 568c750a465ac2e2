import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { diskSpaceCheck } from './disk-space-check.ts';
import { HealthRegistry } from './registry.ts';

async function check(path: string, thresholdBytes: number) {
  const registry = new HealthRegistry([diskSpaceCheck({ path, thresholdBytes })]);
  return (await registry.check()).components.diskSpace ?? assert.fail('no such check');
}

test('a disk with room is UP, with what Actuator tells of it', async () => {
  await using folder = await temporaryFolder();
  const { status, details = {} } = await check(relative('.', folder.path), 1);
  assert.equal(status, 'UP');
  const { total, free, ...rest } = details;
  assert.deepEqual(rest, { threshold: 1, path: folder.path, exists: true });
  assert.ok(Number(free) > 0 && Number(total) >= Number(free));
});

test('less than the threshold is DOWN', async () => {
  await using folder = await temporaryFolder();
  const { details } = await check(folder.path, 1);
  const { status } = await check(folder.path, Number(details?.total) + 1);
  assert.equal(status, 'DOWN');
});

test('a folder that is not there is DOWN, whatever the threshold', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'gone');
  assert.deepEqual(await check(path, 0), {
    status: 'DOWN',
    details: { total: 0, free: 0, threshold: 0, path, exists: false },
  });
});

test('what cannot be looked at is DOWN with the reason', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'file'), '');
  const { status, details } = await check(join(folder.path, 'file/below'), 0);
  assert.equal(status, 'DOWN');
  assert.match(String(details?.error), /ENOTDIR/);
});
