import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { runPortico, startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** What `npm init -y` makes of a folder. */
const COMMONJS = '{"name":"x","version":"1.0.0","main":"index.js","type":"commonjs"}';

for (const [where, manifest] of [
  ['an empty folder', undefined],
  ['a folder of npm init -y', COMMONJS],
] as const) {
  test(`portico init makes ${where} work: a handler, a health check and an endpoint`, async () => {
    await using folder = await temporaryFolder();
    if (manifest !== undefined) await writeFile(join(folder.path, 'package.json'), manifest);
    const { code } = await runPortico(['init', '--yes'], { cwd: folder.path });
    assert.equal(code, 0);
    await using portico = startPortico({ cwd: folder.path, env: { MANAGEMENT_SHOW_DETAILS: 'always' } });
    await portico.ready();
    const { management, webhook } = portico.urls;
    assert.equal(await (await fetch(`${management}/actuator/motd`)).text(), 'Be kind.');
    const health = await (await fetch(`${management}/actuator/health`)).text();
    assert.match(health, /"example":\{"status":"UP"/);
    const body = '{"event":"new_commit","data":{"sha":"c0ffee"}}';
    await fetch(`${webhook}/webhook`, { method: 'POST', body });
    await waitFor('the handler', () => portico.logs().some(({ msg }) => msg === 'commit'));
  });
}

test('portico init overwrites nothing and asks nobody who is not there', async () => {
  await using folder = await temporaryFolder();
  const init = (...args: readonly string[]) => runCommand(['init', ...args], { cwd: folder.path });
  const made = await init('new');
  assert.equal(made.code, 0);
  assert.equal((await readdir(join(folder.path, 'new'))).length, 8);

  await writeFile(join(folder.path, 'package.json'), COMMONJS);
  const kept = await init('--package', '--yes');
  assert.match(kept.stdout, /package\.json is already there and stays/);
  assert.match(kept.stderr, /^Run "npm install portico@file:\S+" and then "npx portico" there\.$/m);
  assert.equal(await readFile(join(folder.path, 'package.json'), 'utf8'), COMMONJS);
  const again = await init('--yes');
  assert.equal(again.code, 2);
  assert.match(again.stderr, /portico\.config\.mts is already there; nothing was written/);

  await using other = await temporaryFolder();
  await writeFile(join(other.path, 'portico.config.json'), '{}');
  assert.equal((await runCommand(['init', '--yes'], { cwd: other.path })).code, 2);
  assert.deepEqual(await readdir(other.path), ['portico.config.json']);
});
