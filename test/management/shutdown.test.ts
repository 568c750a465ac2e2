import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const OPEN = {
  MANAGEMENT_INCLUDE: '*',
  MANAGEMENT_ENDPOINT_ACCESS: 'shutdown=unrestricted,cpuprofile=read-only',
};

test('a POST stops the process as SIGTERM does, with code 0', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path, env: { ...OPEN, SHUTDOWN_PRE_STOP_DELAY: '2000' } });
  await portico.ready();
  const { management, rest } = portico.urls;
  await fetch(`${rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
  const response = await fetch(`${management}/actuator/shutdown`, { method: 'POST' });
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { message: 'Shutting down, bye...' });
  await waitFor('readiness to turn', async () => (await fetch(`${management}/readyz`)).status === 503);
  assert.equal((await fetch(`${rest}/users`)).headers.get('connection'), 'close');
  // The one signal that an orchestrator sends meanwhile is no reason to drop everything.
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  assert.equal(portico.logs().at(-1)?.msg, 'stopped');
  assert.deepEqual(await readdir(folder.path), ['portico.db']);
});

test('a profile that is being recorded does not hold up the stop', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path, env: OPEN });
  await portico.ready();
  const { management } = portico.urls;
  const profile = fetch(`${management}/actuator/cpuprofile?seconds=60`);
  await waitFor('the profile to begin', async () => {
    return (await fetch(`${management}/actuator/cpuprofile?seconds=1`)).status === 429;
  });
  await fetch(`${management}/actuator/shutdown`, { method: 'POST' });
  const response = await profile;
  assert.equal(response.status, 200);
  const { startTime, endTime } = (await response.json()) as { startTime: number; endTime: number };
  assert.ok(endTime > startTime);
  assert.equal(await portico.exited(), 0);
});

test('it is not there unless access is given', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path, env: { MANAGEMENT_INCLUDE: '*' } });
  await portico.ready();
  const { management } = portico.urls;
  for (const id of ['shutdown', 'heapdump', 'cpuprofile']) {
    const response = await fetch(`${management}/actuator/${id}`, { method: 'POST' });
    assert.equal(response.status, 404, id);
  }
  assert.equal((await fetch(`${management}/livez`)).status, 200);
});
