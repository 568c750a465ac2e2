import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../support/free-port.ts';
import { runPortico, startPortico } from '../support/portico-process.ts';
import { shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** A machine that is busy decides nothing. */
const SLOW = ['--timeout', '60000'];
const SHOWN = shownCommand('docs/DEPLOYMENT.md', /^portico health$/);

test('portico health finds the service by its configuration and says why it is not ready', async () => {
  await using folder = await temporaryFolder();
  const port = await freePort();
  await writeFile(
    join(folder.path, 'portico.config.mts'),
    // What keeps a process running does not keep this command.
    `setInterval(() => {}, 1_000); export default { host: '0.0.0.0', management: { port: ${port} } };`,
  );
  const health = (...args: readonly string[]) =>
    runPortico(['health', ...SLOW, ...args], { cwd: folder.path });
  const refused = await health();
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, new RegExp(`not ready: http://127.0.0.1:${port}/readyz: .*ECONNREFUSED`));

  await using portico = startPortico({
    cwd: folder.path,
    env: { SHUTDOWN_PRE_STOP_DELAY: '20000', MANAGEMENT_PORT: undefined },
  });
  await portico.ready();
  assert.deepEqual(await health(), { code: 0, stdout: 'ready\n', stderr: '' });
  assert.equal((await health('--url', `http://127.0.0.1:${port}`)).code, 0);
  portico.child.kill('SIGTERM');
  await waitFor('the stop', () => portico.logs().some(({ msg }) => msg === 'stopping'));
  const stopping = await health();
  assert.equal(stopping.code, 1);
  assert.equal(stopping.stderr, `${SHOWN.output?.replace('8080', String(port))}\n`);
});

test('a stop does not wait for portico health, which sends requests nowhere', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path, env: { SHUTDOWN_PRE_STOP_DELAY: undefined } });
  await portico.ready();
  const url = portico.urls.management ?? '';
  for (let asked = 0; asked < 2; asked += 1) {
    assert.equal((await runPortico(['health', ...SLOW, '--url', url], { cwd: folder.path })).code, 0);
  }
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  assert.equal(portico.logs().find(({ preStopDelay }) => preStopDelay !== undefined)?.preStopDelay, 300);
});

test('without the management door the others are asked for a connection', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest,webhook' } });
  await portico.ready();
  const [rest, webhook] = ['rest', 'webhook'].map((door) => new URL(portico.urls[door] ?? '').port);
  const ask = (port = '') =>
    runPortico(['health', ...SLOW], {
      cwd: folder.path,
      env: { INTERFACES: 'rest,webhook', REST_PORT: rest ?? '', PORT: port },
    });
  assert.equal((await ask(webhook)).code, 0);
  const refused = await ask(String(await freePort()));
  assert.deepEqual([refused.code, /ECONNREFUSED/.test(refused.stderr)], [1, true]);
});

test('the time limit also ends a server that never answers and a module that never loads', async () => {
  await using folder = await temporaryFolder();
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  using cleanup = new DisposableStack();
  cleanup.defer(() => silent.close());
  const { port } = silent.address() as { port: number };
  const args = ['health', '--timeout', '1500'];
  const late = await runPortico([...args, '--url', `http://127.0.0.1:${port}`], { cwd: folder.path });
  assert.deepEqual([late.code, late.stderr], [1, 'portico: not ready: no answer within 1500 ms\n']);
  await writeFile(join(folder.path, 'portico.config.mts'), 'await new Promise(() => {}); export default {};');
  const stuck = await runPortico(args, { cwd: folder.path });
  assert.deepEqual([stuck.code, stuck.stderr], [1, 'portico: not ready: no answer within 1500 ms\n']);
});

test('what a container engine would not understand is 1 too', async () => {
  await using folder = await temporaryFolder();
  const wrong: readonly (readonly [readonly string[], Readonly<Record<string, string>>, RegExp])[] = [
    [['--timeout', '0'], {}, /--timeout must be a whole number/],
    [['--url', 'nowhere'], {}, /--url must be an http or https URL/],
    [['--nonsense'], {}, /--nonsense/],
    [[], { REST_PORT: 'none' }, /REST_PORT/],
    [[], { MANAGEMENT_PORT: '0' }, /port of the management door is 0/],
  ];
  for (const [args, env, message] of wrong) {
    const run = await runPortico(['health', ...args], { cwd: folder.path, env });
    assert.equal(run.code, 1);
    assert.match(run.stderr, message);
  }
});
