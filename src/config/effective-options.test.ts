import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from 'portico';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { settingKeys } from './options/options.ts';
import { effectiveOptions } from './sources.ts';

describe('effective options', () => {
  test('every option has the value that holds, and the place that gave it', async () => {
    await using folder = await temporaryFolder();
    await writeFile(
      join(folder.path, 'portico.config.json'),
      '{"host":"::1","profiles":["a"],"rest":{"port":1}}',
    );
    await writeFile(join(folder.path, 'secret'), 'canary-77\n');
    const { settings, sources } = await loadConfig({
      argv: ['--rest-port', '3'],
      env: { PROFILES: 'b,c', REST_PORT: '2', PORT: '4', WEBHOOK_SECRET_FILE: join(folder.path, 'secret') },
      cwd: folder.path,
    });
    const options = effectiveOptions(settings, sources);
    assert.deepEqual(
      options.map(({ key }) => key),
      settingKeys,
    );
    const of = (wanted: string) => {
      const { key, ...rest } = options.find((option) => option.key === wanted) ?? { key: '' };
      return rest;
    };
    assert.deepEqual(of('rest.port'), { value: 3, origin: '--rest-port', secret: false });
    assert.deepEqual(of('profiles'), {
      value: ['b', 'c'],
      origin: 'System Environment Property "PROFILES"',
      secret: false,
    });
    assert.deepEqual(of('webhook.port'), {
      value: 4,
      origin: 'System Environment Property "PORT"',
      secret: false,
    });
    assert.deepEqual(of('host'), { value: '::1', origin: 'portico.config.json: host', secret: false });
    assert.deepEqual(of('graphql.port'), { value: 4000, origin: 'default', secret: false });
    assert.deepEqual(of('management.user'), { value: undefined, origin: undefined, secret: false });
    assert.deepEqual(of('webhook.secret'), {
      value: ['canary-77'],
      origin: 'System Environment Property "WEBHOOK_SECRET_FILE"',
      secret: true,
    });
  });
});
