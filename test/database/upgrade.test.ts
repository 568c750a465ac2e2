import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { before, describe, test } from 'node:test';
import pg from 'pg';
import { migrateDatabase, openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { MIGRATIONS, olderSchema, THEN } from '../support/older-schema.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

type Row = Readonly<Record<string, unknown>>;

/** A database as its engine's own client sees it. */
interface Client extends AsyncDisposable {
  readonly url: string;
  run(sql: string): Promise<void>;
  rows(sql: string): Promise<readonly Row[]>;
  /** What describes its tables, indexes and triggers. */
  readonly schema: string;
  /** The columns of all tables. */
  readonly columns: string;
}

async function sqliteClient(): Promise<Client> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder());
  const file = join(folder.path, 'old.db');
  const withDb = async <T>(work: (db: DatabaseSync) => T) => {
    using db = new DatabaseSync(file, { timeout: 5_000 });
    // An earlier schema is made in hundreds of transactions.
    db.exec('PRAGMA synchronous=OFF');
    return work(db);
  };
  const rest = cleanup.move();
  return {
    url: `sqlite:${file}`,
    run: (sql) => withDb((db) => db.exec(sql)),
    rows: (sql) => withDb((db) => db.prepare(sql).all()),
    schema: `SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name`,
    columns: `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
      WHERE t.type = 'table' ORDER BY 1, c.cid`,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

async function postgresClient(): Promise<Client> {
  const url = await postgresUrl();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const here = `current_schema()::regnamespace`;
  return {
    url,
    run: async (sql) => void (await client.query(sql)),
    rows: async (sql) => (await client.query<Row>(sql)).rows,
    // Each has a schema of its own, whose name is no difference.
    schema: `
      SELECT 'column' AS type, concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, collation_name) AS is
        FROM information_schema.columns WHERE table_schema = current_schema()
      UNION ALL SELECT 'index', replace(indexdef, schemaname || '.', '') FROM pg_indexes WHERE schemaname = current_schema()
      UNION ALL SELECT 'table', concat_ws(' ', relname, relkind, reloptions) FROM pg_class WHERE relnamespace = ${here}
      UNION ALL SELECT 'trigger', replace(pg_get_triggerdef(t.oid), current_schema() || '.', '')
        FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = tgrelid WHERE relnamespace = ${here} AND NOT tgisinternal
      UNION ALL SELECT 'function', proname || prosrc FROM pg_proc WHERE pronamespace = ${here}
      UNION ALL SELECT 'constraint', conname || ' ' || replace(pg_get_constraintdef(oid), current_schema() || '.', '')
        FROM pg_constraint WHERE connamespace = ${here}
      ORDER BY 1, 2`,
    columns: `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
      WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** The query for each table, over the columns that it has now. */
async function queries(client: Client): Promise<ReadonlyMap<string, string>> {
  const columns = Map.groupBy(await client.rows(client.columns), ({ table }) => String(table));
  columns.delete('migrations');
  // Each rule that a version adds has a row of its own there.
  columns.delete('retention_cursors');
  return new Map(
    Array.from(columns, ([table, found]) => {
      const names = found.map(({ column }) => `"${column}"`).join();
      return [table, `SELECT ${names} FROM ${table} ORDER BY ${found.map((_, i) => i + 1).join()}`];
    }),
  );
}

async function answers(client: Client, asked: ReadonlyMap<string, string>) {
  const all: Record<string, readonly Row[]> = {};
  for (const [table, sql] of asked) all[table] = await client.rows(sql);
  return all;
}

/** What a process of this version does with the rows of an earlier one. */
async function checkUse(url: string, hasDeliveries: boolean): Promise<void> {
  await using database = await openDatabase(url);
  const { users, inbox, deliveries } = database;
  assert.match((await users.readJson(2)) ?? '', /"name":"Bob"/);
  assert.equal(await users.create({ name: 'Cem', email: 'cem@example.org' }), 3);
  if (!hasDeliveries) return;
  const claimed: string[] = [];
  for (let idle = 0; idle < 2; ) {
    const jobs = await inbox.claim('handler:e', 10, 'me', 60_000, { now: Date.now() });
    idle = jobs.length === 0 ? idle + 1 : 0;
    const keys = jobs.flatMap(({ delivery: { id } }) => (/[56]$/.test(id) ? [id] : []));
    assert.ok(keys.length < 2, 'one of a key at a time');
    for (const job of jobs) {
      claimed.push(job.delivery.id.slice(-1));
      assert.ok(await inbox.settle(job, 'me', { kind: 'done' }, Date.now()));
    }
  }
  assert.deepEqual(claimed.toSorted(), ['3', '4', '5', '6'], 'what was open is handled once');
  assert.ok(claimed.indexOf('5') < claimed.indexOf('6'), 'in the order of its key');
  assert.equal((await inbox.backlog()).dead, 1);
  const id = '018bcfe5-6800-7000-8000-000000000002';
  assert.equal((await deliveries.find(id))?.receivedAt, THEN + 2);
  assert.ok(await deliveries.replay(id, [{ target: 'handler:e', orderKey: null }], Date.now()));
  assert.equal((await inbox.backlog()).dead, 0);
}

const engines = { sqlite: sqliteClient, ...(withoutPostgres === undefined && { postgres: postgresClient }) };

for (const [engine, open] of Object.entries(engines)) {
  describe(`an upgrade on ${engine}`, () => {
    let fresh: readonly Row[];
    before(async () => {
      await using client = await open();
      await migrateDatabase(client.url);
      fresh = await client.rows(client.schema);
    });

    for (const [i, last] of MIGRATIONS.entries()) {
      const count = i + 1;
      test(`from a schema whose last migration is ${last} keeps every row, and gives the schema of a new database`, async () => {
        await using client = await open();
        await client.run(olderSchema(engine as 'sqlite' | 'postgres', count));
        const asked = await queries(client);
        const earlier = await answers(client, asked);
        assert.deepEqual(await migrateDatabase(client.url), MIGRATIONS.slice(count));
        // The table is renamed nowhere, so the old questions can still be asked.
        const after = await answers(client, asked);
        // Counters of deliveries and what is derived from the rows may come with a later migration.
        for (const derived of ['sqlite_sequence', 'inbox_size']) {
          delete earlier[derived];
          delete after[derived];
        }
        assert.deepEqual(after, earlier);
        assert.deepEqual(await client.rows(client.schema), fresh);
        await checkUse(client.url, count >= 2);
      });
    }
  });
}
