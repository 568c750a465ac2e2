import assert from 'node:assert/strict';
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import type { Database } from '../../src/sql/database.ts';
import { databaseCheck, openDatabase, writerCheck } from '../../src/sql/open.ts';
import { HealthRegistry } from '../../src/telemetry/health.ts';
import { withoutPostgres } from '../support/databases.ts';
import { startPostgres } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const TABLES = ['users', 'deliveries'] as const;
const GARBAGE = Buffer.alloc(4_096, 0xa5);

function overwrite(path: string, offset: number): void {
  const file = openSync(path, 'r+');
  try {
    writeSync(file, GARBAGE, 0, GARBAGE.length, offset);
  } finally {
    closeSync(file);
  }
}

/** Overwrites the page of a small table in a file that nobody has open. */
function damageSqlite(file: string, table: string): void {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const { page, size } = db
    .prepare(`SELECT rootpage AS page, page_size AS size FROM sqlite_schema, pragma_page_size WHERE name = ?`)
    .get(table) as { page: number; size: number };
  db.close();
  overwrite(file, (page - 1) * size);
}

async function store(url: string): Promise<void> {
  await using database = await openDatabase(url);
  await database.users.create({ name: 'a', email: 'a@b' });
  await storeDeliveries(database, 'e', 1);
}

const checksOf = (database: Database) => new HealthRegistry([databaseCheck(database), writerCheck(database)]);

/** Checks that what a door writes fails, and that health knows it. */
async function assertFound(
  database: Database,
  table: (typeof TABLES)[number],
  reason: RegExp,
): Promise<void> {
  if (table === 'users') await assert.rejects(database.users.create({ name: 'b', email: 'b@b' }), reason);
  else await assert.rejects(storeDeliveries(database, 'e', 1), reason);
  const { status, components } = await checksOf(database).check();
  assert.equal(status, 'DOWN');
  for (const [name, result] of Object.entries(components)) {
    assert.equal(result.status, 'DOWN', name);
    assert.match(JSON.stringify(result.details), reason, name);
  }
}

for (const table of TABLES) {
  test(`sqlite: a damaged page of ${table} is DOWN`, async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'test.db');
    await store(`sqlite:${file}`);
    {
      await using database = openDatabase(`sqlite:${file}`);
      assert.equal((await checksOf(database).check()).status, 'UP');
    }
    damageSqlite(file, table);
    await using database = openDatabase(`sqlite:${file}`);
    await assertFound(database, table, /malformed/);
  });
}

test('a service whose inbox is damaged is not ready, and says so at /health', async () => {
  await using service = await startTestService({ database: 'file' });
  await service.listen();
  const post = async () =>
    (await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"e"}' })).status;
  assert.equal(await post(), 200);
  await service.current.stop();
  damageSqlite(join(service.folder, 'portico.db'), 'deliveries');
  await service.restart();
  assert.equal(await post(), 503);
  const statusOf = async (path: string) => (await fetch(service.urls.management + path)).status;
  for (const path of ['/actuator/health', '/readyz']) {
    await waitFor(`${path} to be DOWN`, async () => (await statusOf(path)) === 503);
  }
  assert.equal(await statusOf('/livez'), 200);
});

describe('postgres', { skip: withoutPostgres ?? false }, () => {
  for (const table of TABLES) {
    test(`a damaged page of ${table} is DOWN`, async () => {
      await using server = await startPostgres();
      const url = await server.createDatabase();
      await store(url);
      const [row] = await server.sql(`SELECT pg_relation_filepath('${table}')`, url);
      await server.stop('fast');
      overwrite(join(server.data, String(row?.[0])), 0);
      await server.start();
      await using database = await openDatabase(url);
      await assertFound(database, table, /invalid page/);
    });
  }

  test('the check grows no table and uses up no id', async () => {
    await using server = await startPostgres({ settings: { autovacuum: 'off' } });
    const url = await server.createDatabase();
    await store(url);
    await using database = await openDatabase(url);
    const state = () =>
      server.sql(
        `SELECT pg_relation_size('users'), pg_relation_size('deliveries'), pg_relation_size('jobs'),
          (SELECT count(*) FROM users), (SELECT count(*) FROM deliveries), (SELECT count(*) FROM jobs)`,
        url,
      );
    const before = await state();
    for (let i = 0; i < 300; i++) await database.pingWriter();
    assert.deepEqual(await state(), before);
    assert.equal(await database.users.create({ name: 'b', email: 'b@b' }), 2);
  });
});

test('sqlite: the check keeps no row and uses up no id', async () => {
  await using folder = await temporaryFolder();
  const url = `sqlite:${join(folder.path, 'test.db')}` as const;
  await store(url);
  await using database = openDatabase(url);
  const size = await database.inbox.size();
  for (let i = 0; i < 300; i++) await database.pingWriter();
  assert.equal(await database.inbox.size(), size);
  assert.equal(await database.users.create({ name: 'b', email: 'b@b' }), 2);
  const seqs = async () => (await database.deliveries.list({}, 9)).items.map(({ seq }) => seq);
  const [newest = 0] = await seqs();
  await storeDeliveries(database, 'e', 1);
  assert.deepEqual(await seqs(), [newest + 1, newest]);
});
