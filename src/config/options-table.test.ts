import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { loadConfig } from './load.ts';
import { flagOf } from './options/option.ts';
import { codeKeys, limitKeys, optionKeys, optionOf, settingKeys } from './options/options.ts';
import { effectiveOptions, renderOptions } from './options-table.ts';

describe('options table', () => {
  const cells = (row: string) => row.slice(2, -2).split(' | ');
  const rows = renderOptions()
    .split('\n')
    .filter((row) => row.startsWith('| `'))
    .map(cells);

  test('every option has its row', () => {
    for (const key of optionKeys) {
      const row = rows.filter(([first]) => first === `\`${key}\``);
      assert.equal(row.length, 1, key);
      assert.equal(row[0]?.[1], `\`${flagOf(key)}\``);
      assert.ok(row[0]?.[2]?.startsWith(`\`${optionOf(key).env}\``));
      assert.equal(row[0]?.[2]?.endsWith(`\`${optionOf(key).env}_FILE\``), optionOf(key).secret);
      assert.equal(row[0]?.length, 5);
    }
  });

  test('every limit has its row, without flag and variable', () => {
    for (const key of limitKeys) {
      const row = rows.filter(([first]) => first === `\`${key}\``);
      assert.deepEqual(
        row.map(({ length }) => length),
        [3],
        key,
      );
    }
  });

  test('every piece of code has its row', () => {
    for (const [key, { shape }] of codeKeys) {
      const row = rows.find(([first]) => first === `\`${key}\``);
      assert.equal(row?.[1], `\`${shape}\``);
      assert.equal(row?.length, 3);
    }
  });

  test('each key stands in the section of its door', () => {
    const [, rest = ''] = renderOptions().split('\n## REST\n');
    const [section = ''] = rest.split('\n## ');
    assert.match(section, /\| `rest\.port` \|/);
    assert.match(section, /\| `rest\.setup` \|/);
    assert.doesNotMatch(section, /^\| `(?!(?:limits\.)?rest\.)/m);
  });

  test('nothing outside of code could be read as a tag', () => {
    for (const row of rows.flat()) assert.doesNotMatch(row.replace(/`[^`]*`/g, ''), /</);
  });
});

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
