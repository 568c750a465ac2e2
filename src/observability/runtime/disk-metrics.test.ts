import assert from 'node:assert/strict';
import { mkdir, rmdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { Metrics } from '../metrics/metrics.ts';
import { addDiskMetrics } from './disk-metrics.ts';

test('the disk with the data is measured at once, again later, and is no number without its folder', async (t) => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'data');
  await mkdir(path);
  let later = 0;
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + later);
  using metrics = new Metrics();
  addDiskMetrics(metrics, path);
  const value = (name: string) => [...(metrics.meter(name)?.series() ?? [])][0]?.measure()[0]?.value;
  const { bsize, blocks } = await statfs(path);
  assert.equal(value('disk.total'), bsize * blocks);
  assert.ok((value('disk.free') ?? 0) > 0);
  await rmdir(path);
  assert.ok((value('disk.free') ?? 0) > 0, 'a reading is used for a while');
  later = 6_000;
  value('disk.free');
  await waitFor('no number', () => Number.isNaN(value('disk.free')));
});
