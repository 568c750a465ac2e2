import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** A module whose handler and endpoint take as long as the test wants: until a file appears. */
const SLOW_MODULE = `
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
const until = async (file, signal) => { while (!existsSync(file) && !signal?.aborted) await sleep(10); };
export default {
  management: { endpoints: [{ id: 'slow', read: async () => { await until('answer'); return 'finished'; } }] },
  webhook: { handlers: {
    slow: async (delivery, { signal, log }) => {
      log.info('begun');
      await until('handled', signal);
      if (signal.aborted) throw signal.reason;
    },
  } },
};`;

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} ends an idle process with code 0 and leaves one file of data`, async () => {
    await using folder = await temporaryFolder();
    await using portico = startPortico({ cwd: folder.path });
    await portico.ready();
    portico.child.kill(signal);
    assert.equal(await portico.exited(), 0);
    assert.equal(portico.logs().at(-1)?.msg, 'stopped');
    assert.deepEqual(await readdir(folder.path), ['portico.db']);
  });
}

test('a stop turns readiness first, finishes the running request, and the management door closes last', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), SLOW_MODULE);
  await using portico = startPortico({ cwd: folder.path, env: { SHUTDOWN_PRE_STOP_DELAY: '2000' } });
  await portico.ready();
  const { management, rest } = portico.urls;
  const running = fetch(`${management}/actuator/slow`);
  await fetch(`${rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
  assert.equal((await fetch(`${management}/readyz`)).status, 200);

  portico.child.kill('SIGTERM');
  await waitFor('readiness to turn', async () => (await fetch(`${management}/readyz`)).status === 503);
  // The doors still answer during the pre-stop delay, and ask their clients to go elsewhere.
  const answering = await fetch(`${rest}/users`);
  assert.equal(answering.status, 200);
  assert.equal(answering.headers.get('connection'), 'close');
  assert.equal((await fetch(`${management}/livez`)).status, 200);

  await writeFile(join(folder.path, 'answer'), '');
  assert.equal(await (await running).text(), 'finished');
  assert.equal(await portico.exited(), 0);
});

test('a delivery in hand is settled when its handler ends in time, and probes are answered until then', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), SLOW_MODULE);
  await using portico = startPortico({ cwd: folder.path });
  await portico.ready();
  await fetch(`${portico.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"slow"}' });
  await waitFor('the handler to begin', () => portico.logs().some(({ msg }) => msg === 'begun'));
  portico.child.kill('SIGTERM');
  const { management, rest } = portico.urls;
  const isOpen = (url: string) =>
    fetch(url).then(
      () => true,
      () => false,
    );
  await waitFor('the other doors to close', async () => !(await isOpen(`${rest}/users`)));
  // Also once each door has had the time to close.
  for (let i = 0; i < 5; i++) {
    assert.equal((await fetch(`${management}/livez`)).status, 200);
    await sleep(25);
  }
  await writeFile(join(folder.path, 'handled'), '');
  assert.equal(await portico.exited(), 0);

  await using next = startPortico({ cwd: folder.path });
  await next.ready();
  next.child.kill('SIGTERM');
  assert.equal(await next.exited(), 0);
  assert.ok(!next.logs().some(({ msg }) => msg === 'begun'), 'it is not handled again');
});

test('a delivery whose handler does not end is left claimable, and the stop takes less than 10 s', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), SLOW_MODULE);
  await using portico = startPortico({ cwd: folder.path });
  await portico.ready();
  await fetch(`${portico.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"slow"}' });
  await waitFor('the handler to begin', () => portico.logs().some(({ msg }) => msg === 'begun'));
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);

  await writeFile(join(folder.path, 'handled'), '');
  await using next = startPortico({ cwd: folder.path });
  await next.ready();
  await waitFor('the delivery to be handled', () => next.logs().some(({ msg }) => msg === 'begun'));
});

test('a second signal ends the process at once', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), SLOW_MODULE);
  await using portico = startPortico({ cwd: folder.path });
  await portico.ready();
  await fetch(`${portico.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"slow"}' });
  await waitFor('the handler to begin', () => portico.logs().some(({ msg }) => msg === 'begun'));
  portico.child.kill('SIGTERM');
  const said = (text: string) => portico.logs().some(({ msg }) => msg === text);
  const waiting = 'waiting for 1 handler: slow; a second signal forces the end';
  await waitFor('what it waits for', () => said(waiting));
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 1);
  assert.ok(!said('stopped'));
  assert.match(
    portico.stderr,
    /\nportico: Ended by a second signal, SIGTERM, during the stop, with 1 handler: slow unfinished; open deliveries run again\. Exit code 1\.\n$/,
  );
});

test('the same signal twice in a row, as npm passes on what a terminal sends to all, is one', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), SLOW_MODULE);
  await using portico = startPortico({ cwd: folder.path, env: { SHUTDOWN_PRE_STOP_DELAY: '100' } });
  await portico.ready();
  portico.child.kill('SIGINT');
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
});

test('a stop says why it goes on answering, which requests it waits for, and what it ends at the deadline', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), SLOW_MODULE);
  await using portico = startPortico({ cwd: folder.path, env: { SHUTDOWN_PRE_STOP_DELAY: '1200' } });
  await portico.ready();
  const { management } = portico.urls;
  const cut = fetch(`${management}/actuator/slow`).catch(() => 'cut');
  await fetch(`${management}/readyz`);
  portico.child.kill('SIGINT');
  const said = (text: string) => portico.logs().some(({ msg }) => msg === text);
  await waitFor('the pre-stop delay', () => said('answering for 1.2 s more: shutdown.preStopDelay says so'));
  const waiting = 'waiting for 1 request: management; Ctrl+C again to force';
  await waitFor('what it waits for', () => said(waiting));
  assert.equal(await cut, 'cut');
  assert.equal(await portico.exited(), 1);
  assert.ok(said('stop deadline reached, ending 1 request: management'));
  // The endpoint polls for ever.
  const kept = 'The service has stopped, but code of the configuration module keeps the process running';
  assert.ok(portico.stderr.endsWith(`portico: ${kept}. Exit code 1.\n`), portico.stderr);
});
