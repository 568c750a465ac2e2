import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { loadConfig } from '../config/load.ts';
import { createService } from './service.ts';

test('the disk that health checks is that of the data, also when a file: URL names it', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'a b.db');
  for (const place of [file, `${pathToFileURL(file)}?psow=1`]) {
    const config = await loadConfig({
      argv: [`--database-url=sqlite:${place}`, '--interfaces=rest,management', '--log-level=silent'],
      env: {},
      cwd: folder.path,
    });
    await using service = await createService(config);
    const reply = await service.doors.management?.inject('/actuator/health/diskSpace');
    const { status, details } = reply?.json() ?? {};
    assert.deepEqual([status, details.path], ['UP', folder.path]);
  }
});
