import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { settleAll, storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

async function waiting(tail: PorticoProcess): Promise<void> {
  await waitFor('tail to begin', () => tail.stderr.includes('Waiting for deliveries'));
}

test('tail shows what is new, each once and in order, until Ctrl+C', async () => {
  await using folder = await temporaryFolder();
  await using database = await openDatabase(`sqlite:${join(folder.path, 'portico.db')}`);
  await storeDeliveries(database, 'old', 3);
  await using tail = startPortico({ cwd: folder.path, args: ['deliveries', 'tail', '--json'] });
  await waiting(tail);
  const first = await storeDeliveries(database, 'new', 2);
  await waitFor('the first two', () => tail.logs().length === 2);
  const more = await storeDeliveries(database, 'new', 1_500, { source: 'gh' });
  await waitFor('the rest', () => tail.logs().length === 1_502);
  assert.deepEqual(
    tail.logs().map(({ id }) => id),
    [...first, ...more],
  );
  assert.deepEqual(Object.keys(tail.logs()[0] ?? {}), [
    'seq',
    'id',
    'source',
    'event',
    'senderEvent',
    'status',
    'receivedAt',
    'plannedAt',
    'attempts',
    'size',
    'error',
  ]);
  tail.child.kill('SIGINT');
  assert.equal(await tail.exited(), 0);
});

test("tail finds an event by the sender's own name too, and shows both", async () => {
  await using folder = await temporaryFolder();
  await using database = await openDatabase(`sqlite:${join(folder.path, 'portico.db')}`);
  const args = ['deliveries', 'tail', '--event', 'push'];
  await using tail = startPortico({ cwd: folder.path, args });
  await waiting(tail);
  const [first] = await storeDeliveries(database, 'new_commit', 1, { source: 'github', senderEvent: 'push' });
  await storeDeliveries(database, 'new_commit', 1);
  const [last] = await storeDeliveries(database, 'push', 1);
  await waitFor('both', () => tail.stdout.trim().split('\n').length === 2);
  const shown = tail.stdout
    .trim()
    .split('\n')
    .map((line) => line.replace(/^\S+ +\S+ +/, ''));
  assert.deepEqual(shown, [`${first}  new_commit (push) from github`, `${last}  push`]);
  tail.child.kill('SIGINT');
  assert.equal(await tail.exited(), 0);
});

test('tail sees what a running service takes', async () => {
  await using folder = await temporaryFolder();
  await using service = startPortico({ cwd: folder.path });
  await service.ready();
  await using tail = startPortico({
    cwd: folder.path,
    args: ['deliveries', 'tail', '--event', 'new\x1bcommit'],
  });
  await waiting(tail);
  for (const event of ['other', 'new\x1bcommit']) {
    const body = JSON.stringify({ event });
    assert.equal((await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body })).status, 200);
  }
  await waitFor('the line', () => tail.stdout.endsWith('\n'));
  assert.match(tail.stdout, /^2\S+Z {2}unhandled {3}[0-9a-f-]{36} {2}new\\u001bcommit\n$/);
});

test('tail --status shows a delivery once it has that status, and again when it has it again', async () => {
  await using folder = await temporaryFolder();
  await using database = await openDatabase(`sqlite:${join(folder.path, 'portico.db')}`);
  await storeDeliveries(database, 'paid', 1);
  await settleAll(database, 'paid', 'dead');
  const args = ['deliveries', 'tail', '--status', 'dead', '--json'];
  await using tail = startPortico({ cwd: folder.path, args });
  await waiting(tail);
  const [one = '', two = ''] = await storeDeliveries(database, 'paid', 2);
  const markers = await storeDeliveries(database, 'marker', 1);
  await settleAll(database, 'marker', 'dead');
  await waitFor('the marker', () => tail.logs().length === 1);
  await settleAll(database, 'paid', 'dead');
  await waitFor('both', () => tail.logs().length === 3);
  assert.deepEqual(
    tail.logs().map(({ id }) => id),
    [...markers, one, two],
  );
  const jobs = [{ target: 'handler:paid', orderKey: null }];
  assert.equal(await database.deliveries.replay(one, jobs, Date.now()), true);
  const [another = ''] = await storeDeliveries(database, 'marker', 1);
  await settleAll(database, 'marker', 'dead');
  await waitFor('the second marker', () => tail.logs().length === 4);
  await settleAll(database, 'paid', 'dead');
  await waitFor('it again', () => tail.logs().length === 5);
  assert.deepEqual(
    tail.logs().map(({ id }) => id),
    [...markers, one, two, another, one],
  );
});
