import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { CHILD_ENVIRONMENT, MAIN, type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { copySource, type SourceCopy } from '../support/source-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** What the next version adds to the schema. */
const NEXT = '999-next.sql';
const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/OPERATIONS.md'), 'utf8');
const HANDLERS = join(import.meta.dirname, '../proof/kill/handlers.ts');

/** The program as the next version may be: it adds columns that this one does not know. */
async function nextVersion(): Promise<SourceCopy> {
  const copy = await copySource([]);
  for (const engine of ['sqlite', 'postgres']) {
    await writeFile(
      join(copy.main, '../../src/sql', engine, 'migrations', NEXT),
      'ALTER TABLE users ADD COLUMN note TEXT;\nALTER TABLE deliveries ADD COLUMN note TEXT;\n',
    );
  }
  return copy;
}

let next: SourceCopy;
before(async () => {
  next = await nextVersion();
});
after(() => next[Symbol.asyncDispose]());

let sent = 0;

/** Creates a user and sends a delivery, both of which are acknowledged. */
async function work({ urls }: PorticoProcess): Promise<void> {
  const token = `t${++sent}`;
  const headers = { 'content-type': 'application/json' };
  const post = (url: string, body: object) =>
    fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const created = await post(`${urls.rest}/users`, { name: token, email: 'a@b' });
  assert.match(await created.text(), /User created successfully/);
  const received = await post(`${urls.webhook}/webhook`, { event: 'steady', data: { token, pause: 0 } });
  assert.equal(await received.text(), 'Webhook received');
}

/** Checks that everything that was sent since `earlier` is there and handled. */
async function checkAll(url: string, earlier: number): Promise<void> {
  await using database = await openDatabase(url);
  await waitFor('all to be handled', async () => (await database.inbox.backlog()).open === 0);
  const { items } = await database.deliveries.list({ status: 'done' }, 99);
  assert.equal(items.length, sent - earlier);
  assert.equal(await database.users.lastId(), sent - earlier);
}

/** Checks that it ends at its start, with the message that the guide shows. */
async function refuses(portico: PorticoProcess): Promise<void> {
  await assert.rejects(portico.ready());
  assert.equal(await portico.exited(), 1);
  const [, reason = ''] = portico.stderr.trim().split('cannot be opened: ');
  assert.match(reason, /newer version/);
  assert.ok(GUIDE.includes(`cannot be opened: ${reason}\n`), portico.stderr);
}

test('a rolling update on PostgreSQL: the old version goes on beside the new one, and does not come back', {
  skip: withoutPostgres ?? false,
}, async () => {
  await using folder = await temporaryFolder();
  const url = await postgresUrl();
  const earlier = sent;
  const start = (main?: string) =>
    startPortico({
      cwd: folder.path,
      env: { DATABASE_URL: url, CONFIG: HANDLERS, RUN: '1' },
      ...(main !== undefined && { main }),
    });
  await using first = start();
  await first.ready();
  await work(first);
  await using second = start(next.main);
  await second.ready();
  for (let i = 0; i < 3; i++) for (const each of [first, second]) await work(each);
  first.child.kill('SIGTERM');
  assert.equal(await first.exited(), 0, first.stderr);
  await using again = start();
  await refuses(again);
  await work(second);
  // For this version to read what is there.
  const client = new pg.Client(url);
  await client.connect();
  await client.query('DELETE FROM migrations WHERE name = $1', [NEXT]);
  await client.end();
  await checkAll(url, earlier);
});

test('an upgrade and a rollback on SQLite: the old version refuses the new schema, and takes the backup', async () => {
  await using folder = await temporaryFolder();
  const url = `sqlite:${join(folder.path, 'portico.db')}`;
  const env = { DATABASE_URL: url, CONFIG: HANDLERS, RUN: '1' };
  const portico = (...words: readonly string[]) =>
    spawnSync(process.execPath, [MAIN, ...words], {
      cwd: folder.path,
      env: { ...CHILD_ENVIRONMENT, ...env },
      encoding: 'utf8',
    });
  const stop = async (running: PorticoProcess) => {
    running.child.kill('SIGTERM');
    assert.equal(await running.exited(), 0, running.stderr);
  };
  const earlier = sent;
  {
    await using running = startPortico({ cwd: folder.path, env });
    await running.ready();
    await work(running);
    assert.equal(portico('backup', 'before-upgrade.db').status, 0);
    await stop(running);
  }
  {
    await using running = startPortico({ cwd: folder.path, env, main: next.main });
    await running.ready();
    await stop(running);
  }
  await using refused = startPortico({ cwd: folder.path, env });
  await refuses(refused);
  const restored = portico('restore', 'before-upgrade.db');
  assert.equal(restored.status, 0, restored.stderr);
  await using running = startPortico({ cwd: folder.path, env });
  await running.ready();
  await work(running);
  await checkAll(url, earlier);
  await stop(running);
});
