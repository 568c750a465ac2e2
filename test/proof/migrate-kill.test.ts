import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { proofCount, proofSeed } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// PORTICO_PROOF_MIGRATION_KILLS: how many migrations of each engine are killed.
const KILLS = proofCount('PORTICO_PROOF_MIGRATION_KILLS', 24);
const SEED = proofSeed();
const ROWS = 6_000;

const id = { type: 'serial' };
const before = {
  towns: {
    columns: {
      id,
      name: { type: 'text', max: 40 },
      cost: { type: 'decimal', precision: 9, scale: 2 },
      note: { type: 'text', max: 200, nullable: true },
    },
  },
  people: {
    one: 'person',
    columns: {
      id,
      town: { type: 'reference', to: 'towns', onDelete: 'cascade' },
      twin_id: { type: 'integer', nullable: true },
    },
  },
};
/** Has a step of each class: renames, an index, a unique, a backfill, NOT NULL, a reference, a type and a loss. */
const after = {
  cities: {
    was: 'towns',
    columns: {
      id,
      title: { type: 'text', max: 30, was: 'name' },
      cost: { type: 'decimal', precision: 9, scale: 3 },
      code: { type: 'uuid', default: 'v7' },
      area: { type: 'integer', default: 7 },
    },
    unique: [['title']],
    indexes: [['cost', 'id']],
  },
  people: {
    one: 'person',
    columns: {
      id,
      town: { type: 'reference', to: 'cities', onDelete: 'cascade' },
      twin: { type: 'reference', to: 'people', onDelete: 'null', nullable: true },
    },
  },
};

interface Place {
  readonly folder: string;
  readonly url: string;
}

const declare = ({ folder }: Place, relations: object) =>
  writeFile(join(folder, 'portico.config.json'), JSON.stringify({ relations }));

/** Rows of a query, as texts. */
type Query = (sql: string) => Promise<readonly (readonly unknown[])[]>;

async function querying<T>(url: string, work: (query: Query) => Promise<T>): Promise<T> {
  if (url.startsWith('sqlite:')) {
    using db = new DatabaseSync(url.slice('sqlite:'.length));
    return await work(async (sql) => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement.all() as unknown as unknown[][];
    });
  }
  await using connection = await Connection.open(url);
  return await work((sql) => connection.run({ text: sql }, []));
}

async function fill(place: Place): Promise<void> {
  const isSqlite = place.url.startsWith('sqlite:');
  const numbers = (count: number) =>
    isSqlite
      ? `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${count}) SELECT`
      : `WITH s AS (SELECT n FROM generate_series(1, ${count}) AS n) SELECT`;
  const cost = isSqlite ? 'n * 5' : 'n * 0.05';
  await querying(place.url, async (query) => {
    await query(
      `INSERT INTO towns (name, cost, note) ${numbers(ROWS)} 'town ' || n, ${cost}, 'note ' || n FROM s`,
    );
    await query(`INSERT INTO people (town_id) ${numbers(ROWS)} 1 + n % ${ROWS - 1} FROM s`);
    await query('UPDATE people SET twin_id = id - 1 WHERE id > 1');
    await query(`DELETE FROM towns WHERE id = ${ROWS}`);
  });
}

const ARGS = ['--rewrite', '--drop', 'cities.note'];

const migrating = ({ folder, url }: Place, ...args: readonly string[]) =>
  startPortico({ cwd: folder, args: ['migrate', ...args], env: { DATABASE_URL: url } });

/** Starts the migration and kills it a while after it said some lines; resolves to what it said. */
async function kill(place: Place, lines: number, pause: number): Promise<readonly string[]> {
  await using portico = migrating(place, ...ARGS);
  const { child } = portico;
  const said = () => portico.stdout.split('\n').slice(0, -1);
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  await waitFor('the migration to come so far', () => hasEnded() || said().length >= lines);
  if (!hasEnded()) await Promise.race([sleep(pause), once(child, 'exit')]);
  child.kill('SIGKILL');
  await portico.exited();
  assert.equal(portico.stderr, '');
  return said();
}

/** Checks that the next calls complete what a kill left, with all rows. */
async function complete(place: Place): Promise<void> {
  const migrate = (...args: readonly string[]) =>
    runCommand(['migrate', ...args], { cwd: place.folder, env: { DATABASE_URL: place.url } });
  const { undeclared } = JSON.parse((await migrate('--check', '--json')).stdout) as {
    readonly undeclared: readonly string[];
  };
  const isDropped = !undeclared.includes('cities.note');
  const made = await migrate('--rewrite', ...(isDropped ? [] : ARGS.slice(1)));
  assert.equal(made.code, 0, made.stderr);
  const again = await migrate('--check');
  assert.equal(again.stdout, 'The schema is up to date; there was nothing to do.\n', made.stdout);
  const isSqlite = place.url.startsWith('sqlite:');
  await querying(place.url, async (query) => {
    const number = async (sql: string) => Number((await query(sql))[0]?.[0]);
    const counts = ['cities', 'people'].map((name) => number(`SELECT count(*) FROM ${name}`));
    assert.deepEqual(await Promise.all(counts), [ROWS - 1, ROWS]);
    const kept = `title = 'town ' || id AND cost = ${isSqlite ? 'id * 50' : 'id * 0.05'} AND area = 7`;
    assert.equal(await number(`SELECT count(*) FROM cities WHERE NOT (${kept})`), 0);
    assert.equal(await number('SELECT count(DISTINCT code) FROM cities'), ROWS - 1);
    const referring = `town_id = 1 + id % ${ROWS - 1} AND (id = 1 OR twin_id = id - 1)`;
    assert.equal(await number(`SELECT count(*) FROM people WHERE NOT (${referring})`), 0);
    if (isSqlite) {
      assert.deepEqual(await query('PRAGMA foreign_key_check'), []);
      assert.deepEqual(await query('PRAGMA integrity_check'), [['ok']]);
    }
    const added =
      "INSERT INTO cities (cost, code, title) SELECT cost, code, 'new' FROM cities LIMIT 1 RETURNING id";
    assert.equal(await number(added), ROWS + 1, 'no number is used again');
  });
  const files = readdirSync(place.folder).filter((name) => name.endsWith('.ndjson'));
  assert.ok(files.length > 0, 'the values of the loss are in a file');
  for (const name of files) {
    const lines = readFileSync(join(place.folder, name), 'utf8').trimEnd().split('\n');
    const values = lines.map((line) => JSON.parse(line) as { readonly id: number; readonly note: string });
    assert.equal(values.length, ROWS - 1, name);
    assert.ok(values.every(({ id, note }) => note === `note ${id}`));
  }
}

/** A database with the tables and rows before the migration. */
async function prepared(folder: string, url: string): Promise<Place> {
  const place = { folder, url };
  await declare(place, before);
  const made = await runCommand(['migrate'], { cwd: folder, env: { DATABASE_URL: url } });
  assert.equal(made.code, 0, made.stderr);
  await fill(place);
  await declare(place, after);
  return place;
}

const engines: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  sqlite: async (folder) => `sqlite:${join(folder, 'test.db')}`,
  ...(withoutPostgres === undefined ? { postgres: postgresUrl } : {}),
};

for (const [engine, urlOf] of Object.entries(engines)) {
  test(`a migration that is killed at any of ${KILLS} points is completed by the next call, on ${engine}`, {
    timeout: 120_000 + KILLS * 30_000,
  }, async (t) => {
    t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
    const random = seededRandom(SEED);
    const hits = new Map<string, number>();
    let steps = 0;
    for (let nth = 0; nth <= KILLS; nth++) {
      await using folder = await temporaryFolder();
      const place = await prepared(folder.path, await urlOf(folder.path));
      // The first one comes to its end.
      const said = await kill(
        place,
        nth === 0 ? Number.POSITIVE_INFINITY : 1 + (nth % steps),
        random.next() * 60,
      );
      if (nth === 0) steps = said.length - 2;
      const last = said.at(-1) ?? 'before the first step';
      hits.set(last, (hits.get(last) ?? 0) + 1);
      await complete(place);
    }
    for (const [last, count] of hits) t.diagnostic(`${count} after: ${last}`);
  });
}

/** A kill at a moment that a lock of another session holds still. */
const moments: Readonly<
  Record<
    string,
    { readonly hold: readonly string[]; readonly waiting: string; readonly args: readonly string[] }
  >
> = {
  'waits for a table': { hold: ['BEGIN', 'SELECT FROM towns LIMIT 1'], waiting: 'ALTER TABLE', args: ARGS },
  'builds an index': {
    hold: ['BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1'],
    waiting: 'INDEX CONCURRENTLY',
    args: ARGS,
  },
  'fills a column in batches': {
    hold: [
      `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_advisory_xact_lock(4242); RETURN NEW; END'`,
      `CREATE TRIGGER wait BEFORE UPDATE ON towns FOR EACH ROW WHEN (NEW.id = ${ROWS / 2}) EXECUTE FUNCTION wait()`,
      'SELECT pg_advisory_lock(4242)',
    ],
    waiting: 'UPDATE "cities"',
    args: ARGS,
  },
  'drops a column': {
    hold: ['BEGIN', 'SELECT FROM cities LIMIT 1'],
    waiting: 'DROP COLUMN',
    args: ['--drop', 'cities.note'],
  },
};

for (const [moment, { hold, waiting, args }] of Object.entries(moments)) {
  test(`a migration that is killed while it ${moment} is completed by the next call`, {
    skip: withoutPostgres,
  }, async () => {
    await using folder = await temporaryFolder();
    const place = await prepared(folder.path, await postgresUrl());
    const env = { DATABASE_URL: place.url };
    if (args !== ARGS) await runCommand(['migrate', '--rewrite'], { cwd: folder.path, env });
    {
      await using holder = await Connection.open(place.url);
      for (const sql of hold) await holder.run({ text: sql }, []);
      const [[pid] = []] = await holder.run({ text: 'SELECT pg_backend_pid()' }, []);
      await using portico = migrating(place, ...args);
      await querying(place.url, (query) =>
        waitFor(`a migration that ${moment}`, async () => {
          assert.equal(portico.child.exitCode, null, portico.stderr);
          const blocked = `SELECT query FROM pg_stat_activity WHERE ${pid} = ANY (pg_blocking_pids(pid))`;
          return (await query(blocked)).some(([text]) => String(text).includes(waiting));
        }),
      );
      portico.child.kill('SIGKILL');
      assert.equal(await portico.exited(), 'SIGKILL');
    }
    await querying(place.url, (query) => query('DROP FUNCTION IF EXISTS wait CASCADE'));
    await complete(place);
  });
}

for (const [engine, urlOf] of Object.entries(engines)) {
  test(`of two migrations at once each step is made once, on ${engine}`, async () => {
    await using folder = await temporaryFolder();
    const place = await prepared(folder.path, await urlOf(folder.path));
    await using one = migrating(place, '--rewrite');
    await using other = migrating(place, '--rewrite');
    assert.deepEqual([await one.exited(), await other.exited()], [0, 0], one.stderr + other.stderr);
    await complete(place);
  });
}
