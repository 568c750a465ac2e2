import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/sql/open.ts';
import { ask } from '../graphql/support/door.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const FILES = ['portico.db', 'portico.db-wal'] as const;
/** Longer than the files go without a look while there are writes, in milliseconds. */
const LOOK = 5;

async function start() {
  const service = await startTestService({
    database: 'file',
    env: { WEBHOOK_LEASE: '60000', GRAPHQL_USERS: 'database' },
  });
  await service.listen();
  const send = async () => {
    const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"e"}' });
    await reply.text();
    return reply.status;
  };
  const create = async () => {
    const reply = await fetch(`${service.urls.rest}/users`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"a","email":"a@b"}',
    });
    await reply.text();
    return reply.status;
  };
  /** The code of its error. */
  const createByGraphql = async () => {
    const { body } = await ask(
      `${service.urls.graphql}/graphql`,
      'mutation { createUser(name: "b", email: "b@c") { id } }',
    );
    return body.errors?.[0]?.extensions?.code;
  };
  const health = async (path = '/actuator/health') => (await fetch(service.urls.management + path)).status;
  return { service, file: join(service.folder, 'portico.db'), send, create, createByGraphql, health };
}

/** What the log says of the file; it is logged with each request that failed. */
function logged({ log }: TestService): string {
  return JSON.stringify(log.entries.filter(({ msg }) => msg === 'request failed'));
}

for (const name of FILES) {
  test(`${name} is deleted: nothing more is acknowledged, health is DOWN, and the log says what to do`, async () => {
    const { service, send, create, createByGraphql, health } = await start();
    await using _ = service;
    assert.deepEqual([await send(), await create(), await health()], [200, 200, 200]);
    rmSync(join(service.folder, name));
    await sleep(LOOK);
    // The first write finds out, and is not acknowledged.
    for (let i = 0; i < 3; i++) assert.deepEqual([await send(), await create()], [503, 503]);
    assert.equal(await createByGraphql(), 'STORE_UNAVAILABLE');
    for (const path of ['/actuator/health', '/readyz']) {
      await waitFor(`${path} to be DOWN`, async () => (await health(path)) === 503);
    }
    assert.equal(await health('/livez'), 200, 'a restart would not help');
    assert.equal(service.current.failed.aborted, false, 'what is in the open file can still be saved');
    assert.match(logged(service), new RegExp(`${name} was deleted or moved .*Put the same file back`));
  });
}

test('another file in its place is no place to acknowledge from, and is left alone', async () => {
  const { service, file, send, health } = await start();
  await using _ = service;
  assert.equal(await send(), 200);
  const other = join(service.folder, 'other.db');
  {
    await using database = openDatabase(`sqlite:${other}`);
    await database.users.create({ name: 'other', email: 'a@b' });
  }
  renameSync(other, file);
  await sleep(LOOK);
  for (let i = 0; i < 3; i++) assert.equal(await send(), 503);
  await waitFor('it to be DOWN', async () => (await health()) === 503);
  assert.match(logged(service), /portico\.db was replaced by another file/);
  await service.current.stop();
  copyFileSync(file, other);
  await using database = openDatabase(`sqlite:${other}`);
  assert.equal(await database.users.lastId(), 1);
  assert.deepEqual((await database.deliveries.list({}, 9)).items, []);
});

test('once the same file is back it goes on, with all that was acknowledged', async () => {
  const { service, send, health } = await start();
  await using _ = service;
  assert.equal(await send(), 200);
  const away = join(service.folder, 'away');
  mkdirSync(away);
  for (const name of FILES) renameSync(join(service.folder, name), join(away, name));
  await sleep(LOOK);
  assert.equal(await send(), 503);
  for (const name of FILES) renameSync(join(away, name), join(service.folder, name));
  assert.equal(await send(), 200);
  await waitFor('it to be UP', async () => (await health()) === 200);
  await service.restart();
  await using database = openDatabase(`sqlite:${join(service.folder, 'portico.db')}`);
  const { items } = await database.deliveries.list({}, 9);
  assert.ok(items.length >= 2, `${items.length}`);
});
