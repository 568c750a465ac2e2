import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { renderMarkdownTable } from '../src/config/options-table.ts';
import { temporaryFolder } from '../test/support/temporary-folder.ts';

const script = join(import.meta.dirname, 'config-table.ts');
const run = (...words: string[]) => spawnSync(process.execPath, [script, ...words], { encoding: 'utf8' });
const start = '<!-- options:start -->';
const end = '<!-- options:end -->';

test('the table is written between its marks, and only there', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'README.md');
  const old = `# Title\n\n${start}\nold\n${end}\n\nafter $& $1\n`;
  await writeFile(file, old);

  const before = run('--check', file);
  assert.equal(before.status, 1);
  assert.match(before.stderr, /run node scripts\/config-table\.ts/);
  assert.equal(await readFile(file, 'utf8'), old);

  assert.equal(run(file).status, 0);
  const written = await readFile(file, 'utf8');
  assert.equal(written, `# Title\n\n${start}\n\n${renderMarkdownTable()}\n\n${end}\n\nafter $& $1\n`);
  assert.equal(run('--check', file).status, 0);
  assert.equal(run(file).status, 0);
  assert.equal(await readFile(file, 'utf8'), written);
});

test('a file without the marks is a mistake', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'README.md');
  await writeFile(file, `${end}\n${start}\n`);
  const { status, stderr } = run(file);
  assert.equal(status, 1);
  assert.match(stderr, /add both lines/);
});
