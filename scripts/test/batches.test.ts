import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { batches, canShare } from './batches.ts';

async function project(files: Readonly<Record<string, string>>) {
  const folder = await temporaryFolder();
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, file)), { recursive: true });
    writeFileSync(join(folder.path, file), text);
  }
  return folder;
}

test('files share processes up to a size, and the longest begin first', async () => {
  const files = [
    'src/a.test.ts',
    'src/b.test.ts',
    'src/c.test.ts',
    'src/d.test.ts',
    'test/process/e.test.ts',
  ];
  await using folder = await project(Object.fromEntries(files.map((file) => [file, ''])));
  const seconds = {
    'src/a.test.ts': 57,
    'src/b.test.ts': 56,
    'src/c.test.ts': 95,
    'test/process/e.test.ts': 70,
  };
  assert.deepEqual(
    batches(folder.path, files, seconds).map((batch) => batch.files),
    [['src/c.test.ts'], ['test/process/e.test.ts'], ['src/a.test.ts'], ['src/b.test.ts', 'src/d.test.ts']],
  );
});

test('a file that uses more than its own is alone, by whatever helper', async () => {
  await using folder = await project({
    'src/plain.test.ts': "import { plain } from './plain.ts';",
    'src/spawns.test.ts': "import { spawn } from 'node:child_process';",
    'src/threads.test.ts': "import { Worker } from 'node:worker_threads';",
    'src/garbage.test.ts': "import { heapInUse } from '../test/support/collect-garbage.ts';",
    'src/restored.test.ts': "test('x', (t) => t.mock.timers.enable());",
    'src/numbers.test.ts': 'const kills = Number(process.env.PORTICO_KILLS);',
    'src/listens.test.ts': "process.on('warning', () => {});",
    'src/clock.test.ts': "test('x', () => mock.timers.enable());",
    'src/environment.test.ts': 'delete process.env.PATH;',
    'src/settings.test.ts': 'const kills = process.env.PORTICO_KILLS;',
    'test/rest/helped.test.ts': "import { start } from '../support/start.ts';",
    'test/support/start.ts': "import { run } from './run.ts';",
    'test/support/run.ts': 'process.umask(0);',
  });
  const shared = (file: string) => canShare(folder.path, file);
  for (const name of ['plain', 'settings', 'numbers', 'spawns', 'threads', 'restored'])
    assert.ok(shared(`src/${name}.test.ts`), name);
  for (const name of ['garbage', 'listens', 'clock', 'environment'])
    assert.ok(!shared(`src/${name}.test.ts`), name);
  assert.ok(!shared('test/rest/helped.test.ts'));
});
