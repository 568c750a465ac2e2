import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import { DatabaseOpenError } from '../../src/core/errors.ts';
import { migrateDatabase, pendingMigrations } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { type MigrationsFolder, migrationsFolder } from '../support/migrations-folder.ts';
import { CHILD_ENVIRONMENT } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const WORKER = new URL('../support/migrate-worker.ts', import.meta.url).pathname;

type Row = Readonly<Record<string, unknown>>;

interface Engine {
  url(folder: string): Promise<string>;
  /** Runs a statement beside Portico. */
  rows(url: string, sql: string): Promise<readonly Row[]>;
  readonly tables: string;
  /** Fills the table `t`, with more than any cache of the engine holds. */
  readonly fill: string;
}

const sqlite: Engine = {
  url: async (folder) => `sqlite:${join(folder, 'test.db')}`,
  async rows(url, sql) {
    using db = new DatabaseSync(url.slice('sqlite:'.length));
    return db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));
  },
  tables: `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`,
  fill: `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO t (a) SELECT printf('%0500d', i) FROM n;`,
};
const postgres: Engine = {
  url: () => postgresUrl(),
  async rows(url, sql) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Row>(sql)).rows;
    } finally {
      await client.end();
    }
  },
  tables: `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY 1`,
  fill: `INSERT INTO t (a) SELECT lpad(i::text, 500, '0') FROM generate_series(1, 20000) AS i;`,
};

const FIRST = 'CREATE TABLE t (a TEXT NOT NULL);';
const SECOND = `ALTER TABLE t ADD COLUMN b TEXT; INSERT INTO t (a, b) VALUES ('second', 'b');`;
const THIRD = `CREATE TABLE u (a TEXT); INSERT INTO u SELECT a FROM t WHERE b IS NOT NULL;`;

for (const [name, engine] of Object.entries({ sqlite, postgres })) {
  const skip = name === 'postgres' ? (withoutPostgres ?? false) : false;
  describe(`migrations on ${name}`, { skip }, () => {
    /** An empty database, and a folder with these migrations. */
    async function setup(files: Readonly<Record<string, string>>) {
      const stack = new AsyncDisposableStack();
      const place = stack.use(await temporaryFolder());
      const folder = stack.use(await migrationsFolder(files));
      const url = await engine.url(place.path);
      const column = async (sql: string) => (await engine.rows(url, sql)).map((row) => Object.values(row)[0]);
      return {
        place: place.path,
        folder,
        url,
        migrate: () => migrateDatabase(url, folder.url),
        pending: () => pendingMigrations(url, folder.url),
        rows: (sql: string) => engine.rows(url, sql),
        column,
        tables: () => column(engine.tables),
        applied: () => column('SELECT name FROM migrations ORDER BY applied_at, name'),
        [Symbol.asyncDispose]: () => stack.disposeAsync(),
      };
    }

    test('run in the order of their names, each once, and one that is added runs alone on the rows that are there', async () => {
      await using given = await setup({ '001-first.sql': FIRST, 'README.md': 'no migration' });
      assert.deepEqual(await given.pending(), ['001-first.sql']);
      assert.deepEqual(readdirSync(given.place), [], 'a look makes no file');
      const before = Date.now();
      assert.deepEqual(await given.migrate(), ['001-first.sql']);
      const [time] = await given.column('SELECT applied_at FROM migrations');
      assert.ok(Number(time) >= before && Number(time) <= Date.now());
      await given.rows(`INSERT INTO t (a) VALUES ('mine')`);
      given.folder.write('010-third.sql', THIRD);
      given.folder.write('002-second.sql', SECOND);
      assert.deepEqual(await given.pending(), ['002-second.sql', '010-third.sql']);
      assert.deepEqual(await given.applied(), ['001-first.sql'], 'a look changes nothing');
      assert.deepEqual(await given.migrate(), ['002-second.sql', '010-third.sql']);
      assert.deepEqual(await given.migrate(), []);
      assert.deepEqual(await given.pending(), []);
      assert.deepEqual(await given.rows('SELECT a, b FROM t ORDER BY a'), [
        { a: 'mine', b: null },
        { a: 'second', b: 'b' },
      ]);
      assert.deepEqual(await given.column('SELECT a FROM u'), ['second']);
    });

    test('one with an error in its second statement leaves the database as it was, and runs once it is mended', async () => {
      const files = {
        '001-first.sql': FIRST,
        '002-second.sql': `${SECOND} INSERT INTO t (a) VALUES (NULL);`,
        '003-third.sql': THIRD,
      };
      await using given = await setup(files);
      const notNull = /not.null/i;
      await assert.rejects(given.migrate(), notNull);
      assert.deepEqual(await given.tables(), [], 'those before it are undone too');
      given.folder.write('001-first.sql', FIRST);
      for (const name of ['002-second.sql', '003-third.sql']) given.folder.remove(name);
      await given.migrate();
      await given.rows(`INSERT INTO t (a) VALUES ('mine')`);
      for (const [name, sql] of Object.entries(files)) given.folder.write(name, sql);
      await assert.rejects(given.migrate(), notNull);
      assert.deepEqual(await given.rows('SELECT * FROM t'), [{ a: 'mine' }]);
      assert.deepEqual(await given.tables(), ['migrations', 't']);
      assert.deepEqual(await given.pending(), ['002-second.sql', '003-third.sql']);
      given.folder.write('002-second.sql', SECOND);
      assert.deepEqual(await given.migrate(), ['002-second.sql', '003-third.sql']);
      assert.deepEqual(await given.column('SELECT a FROM t ORDER BY a'), ['mine', 'second']);
    });

    test('a process that is killed in the third leaves the database as it was, and the next one runs both', async () => {
      await using given = await setup({ '001-first.sql': FIRST });
      await given.migrate();
      await given.rows(`INSERT INTO t (a) VALUES ('mine')`);
      given.folder.write('002-second.sql', `${SECOND} ${engine.fill}`);
      const third = given.folder.writePipe('003-third.sql');
      await using worker = startWorker(given.url, given.folder);
      await third.reached();
      worker.child.kill('SIGKILL');
      await worker.exited;
      assert.deepEqual(await given.rows('SELECT * FROM t'), [{ a: 'mine' }]);
      assert.deepEqual(await given.applied(), ['001-first.sql']);
      given.folder.remove('003-third.sql');
      given.folder.write('003-third.sql', THIRD);
      assert.deepEqual(await given.migrate(), ['002-second.sql', '003-third.sql']);
      assert.deepEqual((await given.column('SELECT count(*) FROM t')).map(Number), [20_002]);
      assert.deepEqual(await given.column('SELECT a FROM u'), ['second']);
    });

    test('of processes that start together one runs each, and the others wait for it', async () => {
      await using given = await setup({ '001-first.sql': FIRST, '002-second.sql': SECOND });
      const third = given.folder.writePipe('003-third.sql');
      // Together, because PostgreSQL ends the session of the one that waits for the third if that takes too long.
      await using first = startWorker(given.url, given.folder);
      await using second = startWorker(given.url, given.folder);
      await using last = startWorker(given.url, given.folder);
      for (const each of [first, second, last])
        await waitFor('a process to begin', () => each.output.includes('begins'));
      const give = await third.reached();
      // Those that come too late find nothing to do, and would prove nothing.
      if (given.url.startsWith('postgres')) {
        await waitFor('the others to ask for the lock', async () => {
          for (const { child, output } of [first, second, last]) assert.equal(child.exitCode, null, output);
          const asking = await given.column(`
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'`);
          return Number(asking[0]) >= 2;
        });
      }
      give(THIRD);
      assert.deepEqual(
        await Promise.all([first, second, last].map(({ exited }) => exited)),
        [0, 0, 0],
        [first, second, last].map(({ output }) => output).join(),
      );
      const files = ['001-first.sql', '002-second.sql', '003-third.sql'];
      assert.deepEqual(
        [first, second, last].flatMap(({ output }) => JSON.parse(output.split('\n')[1] ?? '')),
        files,
      );
      assert.deepEqual(await given.column('SELECT name FROM migrations ORDER BY name'), files);
      assert.deepEqual(await given.column('SELECT a FROM u'), ['second']);
    });

    test('a database with one that the program lacks is refused and left as it is', async () => {
      await using given = await setup({ '001-first.sql': FIRST, '002-second.sql': SECOND });
      await given.migrate();
      given.folder.remove('002-second.sql');
      given.folder.write('003-third.sql', THIRD);
      const isRefusal = (error: unknown) =>
        error instanceof DatabaseOpenError &&
        /written by a newer version \(002-second\.sql\)\. Start that version, or restore a backup/.test(
          error.message,
        );
      await assert.rejects(given.migrate(), isRefusal);
      await assert.rejects(given.pending(), isRefusal);
      assert.deepEqual(await given.tables(), ['migrations', 't']);
      assert.deepEqual(await given.column('SELECT name FROM migrations ORDER BY name'), [
        '001-first.sql',
        '002-second.sql',
      ]);
    });
  });
}

/** A process that migrates. */
function startWorker(url: string, folder: MigrationsFolder) {
  const child = spawn(process.execPath, [WORKER, url, folder.url.href], { env: CHILD_ENVIRONMENT });
  const exited = once(child, 'close').then(([code, signal]) => code ?? signal);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return {
    child,
    exited,
    get output() {
      return output;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
