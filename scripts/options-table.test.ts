import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { flagOf } from '../src/config/options/option.ts';
import { codeKeys, limitKeys, optionKeys, optionOf } from '../src/config/options/options.ts';
import { renderOptions } from './options-table.ts';

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
