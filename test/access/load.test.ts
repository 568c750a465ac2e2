import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from '../../src/access/rates.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

test('what a start writes refuses nobody: the doors open once the database has committed something', async () => {
  await using service = await startTestService({
    database: 'file',
    env: { INTERFACES: 'rest,management', API_MAX_WRITE_DELAY: '1', MANAGEMENT_INCLUDE: 'auditevents' },
  });
  for (let start = 0; start < 5; start++) {
    if (start === 0) await service.listen();
    else await service.restart();
    const create = { method: 'POST', body: '{"name":"A","email":"a@b"}' };
    assert.equal((await fetch(`${service.urls.rest}/users`, create)).status, 200);
  }
});

test('while writes wait for their commit further ones are refused; reads, health and probes are not', async () => {
  await using service = await startTestService({
    database: 'file',
    env: {
      INTERFACES: 'rest,graphql,management',
      API_MAX_WRITE_DELAY: '100',
      GRAPHQL_USERS: 'database',
      MANAGEMENT_INCLUDE: 'auditevents,metrics',
    },
  });
  await service.listen();
  const { rest, graphql, management } = service.urls;
  const create = () => fetch(`${rest}/users`, { method: 'POST', body: '{"name":"A","email":"a@b"}' });
  // Another program may have the disk for a moment.
  await waitFor('a create', async () => (await create()).status === 200);
  using db = new DatabaseSync(join(service.folder, 'portico.db'), { timeout: 5_000 });
  db.exec('BEGIN IMMEDIATE');
  const waiting = create();
  // The first ones wait as well, so none of them is waited for.
  const refused = await waitFor('a refusal', async () => {
    const reply = await Promise.race([create(), sleep(20, undefined)]);
    return reply?.headers.get('x-error-code') === 'OVERLOADED' ? reply : undefined;
  });
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get('retry-after'), '1');
  const mutation = await fetch(`${graphql}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"query":"mutation { createUser(name: \\"A\\", email: \\"a@b\\") { id } }"}',
  });
  assert.equal(mutation.status, 503);
  assert.equal((await fetch(`${rest}/users/1`)).status, 200);
  assert.equal((await fetch(`${management}/livez`)).status, 200);
  db.exec('ROLLBACK');
  assert.equal((await waiting).status, 200);
  await waitFor('the end of it', async () => (await create()).status === 200);

  // What it refuses is counted, and says nothing about its clients.
  const show = async (path: string) => (await fetch(`${management}/actuator/${path}`)).json();
  const counted = (await show('metrics/http.server.requests?tag=status:503')) as {
    readonly measurements: readonly { readonly statistic: string; readonly value: number }[];
  };
  const count = counted.measurements.find(({ statistic }) => statistic === 'COUNT');
  assert.ok(Number(count?.value) >= 2);
  await fetch(`${rest}/users`, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' }, body: '{}' });
  const events = await waitFor('the refusal of another site', async () => {
    const shown = (await show('auditevents')) as { readonly events: readonly { readonly data: unknown }[] };
    return shown.events.length > 0 && shown.events;
  });
  assert.deepEqual(
    events.map(({ data }) => Object(data).status),
    [403],
  );
});

/** Keeps the event loop busy for longer than `load` allows; the timers have run when it resolves. */
async function beLate(): Promise<void> {
  const until = performance.now() + 400;
  while (performance.now() < until);
  // The next tick begins with the timers, then come the requests.
  await sleep(0);
}

test('a late event loop refuses what has arrived meanwhile, until it is in time again', async () => {
  using load = new Load({ maxLoopDelay: 100, maxWriteDelay: 0, writeDelay: () => 0 });
  assert.equal(load.refusal('read'), undefined);
  const late = await waitFor('a late loop', async () => {
    await beLate();
    return load.refusal('read');
  });
  assert.deepEqual([late.status, late.code, late.headers['retry-after']], [503, 'OVERLOADED', '1']);
  await waitFor('a loop in time', () => load.refusal('read') === undefined);
});

test('what has kept the loop busy before the first request refuses nobody', async () => {
  using load = new Load({ maxLoopDelay: 100, maxWriteDelay: 0, writeDelay: () => 0 });
  await beLate();
  assert.equal(load.refusal('read'), undefined);
});
