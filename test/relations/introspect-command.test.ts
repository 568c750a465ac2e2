import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import pg from 'pg';
import type { Engine } from '../../src/sql/schema/tables.ts';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { shopTables } from '../support/relations/existing.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

interface Foreign {
  readonly url: string;
  run(sql: string): Promise<readonly (readonly unknown[])[]>;
}

/** Databases that another program has made. */
const foreign: Readonly<Record<string, (folder: string) => Promise<Foreign>>> = {
  async sqlite(folder) {
    const file = join(folder, 'shop.db');
    return {
      url: `sqlite:${file}`,
      async run(sql) {
        using db = new DatabaseSync(file);
        if (!sql.startsWith('SELECT')) {
          db.exec(sql);
          return [];
        }
        const statement = db.prepare(sql);
        statement.setReturnArrays(true);
        return statement.all() as unknown as unknown[][];
      },
    };
  },
  ...(withoutPostgres === undefined && {
    async postgres() {
      const url = await postgresDatabase();
      return {
        url,
        async run(sql: string) {
          const client = new pg.Client({ connectionString: url });
          await client.connect();
          const { rows } = await client
            .query({ text: sql, rowMode: 'array' } as pg.QueryArrayConfig)
            .finally(() => client.end());
          return rows ?? [];
        },
      };
    },
  }),
};

/** What the catalogue says of tables, to be compared. */
const CATALOGUE: Readonly<Record<string, string>> = {
  sqlite: `SELECT name, sql FROM sqlite_schema WHERE tbl_name IN ('Album', 'Artist', 'Track List', 'staff') ORDER BY name`,
  postgres: `SELECT c.relname, a.attname, a.atttypid, a.attnotnull, (SELECT count(*) FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal),
      (SELECT count(*) FROM pg_index WHERE indrelid = c.oid), (SELECT count(*) FROM pg_constraint WHERE conrelid = c.oid)
    FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid WHERE c.relname IN ('Album', 'Artist', 'Track List', 'staff') ORDER BY 1, 2`,
};

for (const [engine, create] of Object.entries(foreign)) {
  test(`what portico introspect writes is served, and no table changes, on ${engine}`, async () => {
    await using folder = await temporaryFolder();
    const { url: DATABASE_URL, run } = await create(folder.path);
    await run(shopTables(engine as Engine));
    const before = await run(CATALOGUE[engine] ?? '');
    const introspect = (...args: readonly string[]) =>
      runCommand(['introspect', ...args], { cwd: folder.path, env: { DATABASE_URL } });
    // As the shell leaves it that the output goes to.
    await writeFile(join(folder.path, 'portico.config.mts'), '');
    const module = await introspect();
    assert.equal(module.code, 0, module.stderr);
    assert.match(
      module.stdout,
      /^import \{ decimal, defineConfig, integer, oneOf, reference, serial, text, timestamp \} from 'portico';/,
    );
    assert.match(module.stdout, /Price: decimal\(10, 2, \{ min: '0.00', default: '9.90' \}\),/);
    assert.match(module.stderr, /^Log: has no primary key; add one, or serve a view with a declared key$/m);
    const source = new URL('../../src/index.ts', import.meta.url).href;
    await writeFile(
      join(folder.path, 'portico.config.mts'),
      module.stdout.replace("'portico'", `'${source}'`),
    );
    const json = await introspect('--json', '--only', 'Album,Artist');
    assert.deepEqual(Object.keys((JSON.parse(json.stdout) as { relations: object }).relations), [
      'Album',
      'Artist',
    ]);

    await using portico = startPortico({ cwd: folder.path, env: { DATABASE_URL, INTERFACES: 'rest' } });
    await portico.ready();
    const list = await fetch(`${portico.urls.rest}/Album?fields=Title,Artist(Name)&limit=1`);
    assert.deepEqual(await list.json(), [{ Title: 'First', Artist: { Name: 'Ada' } }]);
    const created = await fetch(`${portico.urls.rest}/staff`, { method: 'POST', body: '{"name":"Eve"}' });
    assert.equal(created.status, 201, await created.text());
    assert.deepEqual(await run(CATALOGUE[engine] ?? ''), before);
    // A second command sees Portico's own tables, and leaves them out.
    const again = await introspect();
    assert.equal(again.stdout, module.stdout);
  });

  test(`a configuration of one line serves all tables, on ${engine}`, async () => {
    await using folder = await temporaryFolder();
    const { url: DATABASE_URL, run } = await create(folder.path);
    await run(shopTables(engine as Engine));
    const config = join(folder.path, 'portico.config.json');
    await writeFile(config, '{ "relations": "introspect" }');
    const env = { DATABASE_URL, INTERFACES: 'rest' };
    {
      await using portico = startPortico({ cwd: folder.path, env });
      await portico.ready();
      const rows = await fetch(`${portico.urls.rest}/Track_List?Album.Title=First`);
      assert.equal(((await rows.json()) as unknown[]).length, 2);
      assert.match(portico.stdout + portico.stderr, /"tables":\["Log: has no primary key/);
    }
    const exported = await runCommand(['export', 'Artist', 'artists.csv'], {
      cwd: folder.path,
      env: { DATABASE_URL },
    });
    assert.equal(exported.code, 0, exported.stderr);
    assert.match(await readFile(join(folder.path, 'artists.csv'), 'utf8'), /^ArtistId,Name\r\n1,"Ada"/);
    await writeFile(config, '{ "relations": { "introspect": { "only": ["Artist"], "without": [] } } }');
    const wrong = await runCommand(['migrate', '--check'], { cwd: folder.path, env: { DATABASE_URL } });
    assert.match(wrong.stderr, /relations\.introspect\.without is not an option/);
    await writeFile(config, '{ "relations": { "introspect": { "only": ["Artist"] } } }');
    await using portico = startPortico({ cwd: folder.path, env });
    await portico.ready();
    assert.equal((await fetch(`${portico.urls.rest}/Artist/1`)).status, 200);
    assert.equal((await fetch(`${portico.urls.rest}/Album/1`)).status, 404);
  });

  test(`a start refuses tables of another program that have names of its own, on ${engine}`, async () => {
    await using folder = await temporaryFolder();
    const { url: DATABASE_URL, run } = await create(folder.path);
    await run(
      `CREATE TABLE users (id INTEGER PRIMARY KEY, login TEXT); CREATE TABLE "Item" (id INTEGER PRIMARY KEY); INSERT INTO users VALUES (1, 'ann');`,
    );
    await writeFile(join(folder.path, 'portico.config.json'), '{ "relations": "introspect" }');
    const start = await runCommand(['migrate'], { cwd: folder.path, env: { DATABASE_URL } });
    assert.equal(start.code, 1, start.stdout);
    assert.match(start.stderr, /another program has made tables with names that Portico needs: users\./);
    assert.match(start.stderr, engine === 'sqlite' ? /Rename them/ : /CREATE SCHEMA portico/);
    assert.deepEqual(await run('SELECT * FROM users'), [[1, 'ann']]);
    const { stderr } = await runCommand(['introspect'], { cwd: folder.path, env: { DATABASE_URL } });
    assert.match(stderr, /^users: has a name that Portico needs for a table of its own/m);
    if (engine === 'sqlite') return;

    await run('CREATE SCHEMA portico');
    const own = `${DATABASE_URL}${DATABASE_URL.includes('?') ? '&' : '?'}options=-csearch_path%3Dportico`;
    const relations = { introspect: { schema: 'public' } };
    await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations }));
    await using portico = startPortico({ cwd: folder.path, env: { DATABASE_URL: own, INTERFACES: 'rest' } });
    await portico.ready();
    const rows = await fetch(`${portico.urls.rest}/users_rows`);
    assert.deepEqual(await rows.json(), [{ id: 1, login: 'ann' }]);
    const user = await fetch(`${portico.urls.rest}/users`, {
      method: 'POST',
      body: '{"name":"Bo","email":"b@o"}',
    });
    assert.equal(user.status, 200, await user.text());
    assert.deepEqual(await run('SELECT name FROM portico.users'), [['Bo']]);
    assert.deepEqual(await run('SELECT login FROM public.users'), [['ann']]);
  });
}
