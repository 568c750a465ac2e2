import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const MODULE = join(import.meta.dirname, '../../src/sql/open.ts');

/** Whether a process that has opened `url` has loaded the driver of PostgreSQL. */
async function loadsDriver(url: string): Promise<boolean> {
  const program = `
    import { createRequire } from 'node:module';
    import { openDatabase } from ${JSON.stringify(MODULE)};
    try { await (await openDatabase(${JSON.stringify(url)}))[Symbol.asyncDispose](); } catch {}
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    console.log(loaded.some((file) => /[\\\\/]node_modules[\\\\/]pg[\\\\/]/.test(file)));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
  });
  return stdout.trim() === 'true';
}

test('the driver of PostgreSQL is loaded by those who use it, and by nobody else', async () => {
  assert.equal(await loadsDriver('sqlite::memory:'), false);
  assert.equal(await loadsDriver('postgres://nobody@127.0.0.1:1/x'), true);
});
