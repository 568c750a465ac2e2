import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../test/support/temporary-folder.ts';
import { renderOptions } from './options-table.ts';

const script = join(import.meta.dirname, 'docs.ts');
const run = (...words: string[]) => spawnSync(process.execPath, [script, ...words], { encoding: 'utf8' });
const start = '<!-- options:start -->';
const end = '<!-- options:end -->';

/** A folder with a page of the configuration of this content, and the page of errors. */
async function project(configuration: string) {
  const folder = await temporaryFolder();
  await mkdir(join(folder.path, 'docs'));
  await writeFile(
    join(folder.path, 'docs/ERRORS.md'),
    '<!-- error-codes:start -->\n<!-- error-codes:end -->\n',
  );
  const webhooks =
    '<!-- samples:start -->\n<!-- samples:end -->\n<!-- renamed-events:start -->\n<!-- renamed-events:end -->\n';
  await writeFile(join(folder.path, 'docs/WEBHOOKS.md'), webhooks);
  await writeFile(join(folder.path, 'docs/OPERATIONS.md'), '<!-- meters:start -->\n<!-- meters:end -->\n');
  await mkdir(join(folder.path, 'deploy/grafana'), { recursive: true });
  await writeFile(join(folder.path, 'docs/CONFIGURATION.md'), configuration);
  return folder;
}

test('the tables are written between their marks, and only there', async () => {
  const old = `# Title\n\n${start}\nold\n${end}\n\nafter $& $1\n`;
  await using folder = await project(old);
  const file = join(folder.path, 'docs/CONFIGURATION.md');

  const before = run('--check', folder.path);
  assert.equal(before.status, 1);
  assert.match(before.stderr, /section options is outdated; run "npm run docs"/);
  assert.match(before.stderr, /section error-codes is outdated/);
  const onLinux = process.platform === 'linux';
  if (onLinux) assert.match(before.stderr, /section meters is outdated.*\n.*portico\.json: it is outdated/);
  assert.equal(await readFile(file, 'utf8'), old);

  assert.equal(run(folder.path).status, 0);
  const written = await readFile(file, 'utf8');
  assert.equal(written, `# Title\n\n${start}\n\n${renderOptions()}\n\n${end}\n\nafter $& $1\n`);
  assert.match(await readFile(join(folder.path, 'docs/ERRORS.md'), 'utf8'), /\n\| `NO_ROUTE` \| 404 \| /);
  const renamed = /\n\| `github` \| `push` \| `new_commit` \|\n/;
  assert.match(await readFile(join(folder.path, 'docs/WEBHOOKS.md'), 'utf8'), renamed);
  if (onLinux) {
    assert.match(
      await readFile(join(folder.path, 'docs/OPERATIONS.md'), 'utf8'),
      /\n\| `webhook\.dead` \| gauge \|/,
    );
    assert.match(
      await readFile(join(folder.path, 'deploy/grafana/portico.json'), 'utf8'),
      /"uid": "portico"/,
    );
  }
  assert.equal(run('--check', folder.path).status, 0);
  assert.equal(run(folder.path).status, 0);
  assert.equal(await readFile(file, 'utf8'), written);
});

test('a file without the marks is a mistake', async () => {
  await using folder = await project(`${end}\n${start}\n`);
  const { status, stderr } = run(folder.path);
  assert.equal(status, 1);
  assert.match(stderr, /add both lines/);
});
