import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { runPortico, startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FILES = readdirSync(join(import.meta.dirname, '../../src/sql/sqlite/migrations')).sort();

interface Engine {
  url(folder: string): Promise<string>;
  /** Runs statements on the database, beside Portico. */
  sql(url: string, text: string): Promise<void>;
}

const sqlite: Engine = {
  url: async (folder) => `sqlite:${join(folder, 'test.db')}`,
  async sql(url, text) {
    using db = new DatabaseSync(url.slice('sqlite:'.length));
    db.exec(text);
  },
};
const postgres: Engine = {
  url: () => postgresUrl(),
  async sql(url, text) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(text);
    await client.end();
  },
};

for (const [name, { url: newUrl, sql }] of Object.entries({ sqlite, postgres })) {
  const skip = name === 'postgres' ? (withoutPostgres ?? false) : false;
  describe(`portico migrate on ${name}`, { skip }, () => {
    test('says what is missing, runs it once, and has nothing to do then', async () => {
      await using folder = await temporaryFolder();
      const url = await newUrl(folder.path);
      const migrate = (...args: readonly string[]) =>
        runCommand(['migrate', ...args], { cwd: folder.path, env: { DATABASE_URL: url } });

      const missing = await migrate('--check', '--json');
      assert.deepEqual(JSON.parse(missing.stdout), { applied: [], pending: FILES });
      assert.equal(missing.code, 3);
      assert.match(
        (await migrate('--check')).stdout,
        /^3 migrations are missing: 001-schema\.sql, 002-endpoint-states\.sql, 003-jobs\.sql\.$/m,
      );
      assert.deepEqual(readdirSync(folder.path), [], 'a look makes no file');

      const ran = await migrate();
      assert.equal(ran.stdout, `The schema is up to date now; ran ${FILES.join(', ')}.\n`);
      assert.equal(ran.code, 0);
      const again = await migrate('--json');
      assert.deepEqual([again.code, JSON.parse(again.stdout)], [0, { applied: [], pending: [] }]);
      assert.equal((await migrate('--check')).code, 0);

      await sql(url, `INSERT INTO migrations VALUES ('999-later.sql', 0)`);
      for (const args of [[], ['--check']]) {
        const newer = await migrate(...args);
        assert.match(newer.stderr, /written by a newer version \(999-later\.sql\)/);
        assert.equal(newer.code, 1);
      }
    });

    test('--no-migrate starts and looks at a schema that is up to date, and at no other', async () => {
      await using folder = await temporaryFolder();
      const url = await newUrl(folder.path);
      const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
        startPortico({ cwd: folder.path, args, env: { DATABASE_URL: url, ...env } });
      {
        await using refused = start(['serve', '--no-migrate']);
        assert.equal(await refused.exited(), 1);
        assert.match(
          refused.stderr,
          /not up to date \(001-schema\.sql, 002-endpoint-states\.sql, 003-jobs\.sql\)\. Run "portico migrate" first/,
        );
        assert.equal(existsSync(join(folder.path, 'test.db')), false);
      }
      await runCommand(['migrate'], { cwd: folder.path, env: { DATABASE_URL: url } });
      {
        await using started = start(['serve', '--no-migrate']);
        await started.ready();
        const created = await fetch(`${started.urls.rest}/users`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ name: 'a', email: 'a@b' }),
        });
        assert.equal(created.status, 200);
      }
      const last = FILES.at(-1) ?? '';
      await sql(url, `DELETE FROM migrations WHERE name = '${last}'`);
      {
        await using refused = start(['serve'], { DATABASE_MIGRATE: 'false' });
        assert.equal(await refused.exited(), 1);
        assert.ok(refused.stderr.includes(`not up to date (${last})`), refused.stderr);
      }
      for (const words of [['list'], ['show', 'id'], ['tail'], ['replay', 'id'], ['discard', 'id']]) {
        const args = ['deliveries', ...words, '--no-migrate'];
        const refused = await runCommand(args, { cwd: folder.path, env: { DATABASE_URL: url } });
        assert.ok(refused.stderr.includes(`not up to date (${last})`), refused.stderr);
        assert.equal(refused.code, 1);
      }
      await sql(url, `INSERT INTO migrations VALUES ('${last}', 0), ('999-later.sql', 0)`);
      {
        await using refused = start(['serve', '--no-migrate']);
        assert.equal(await refused.exited(), 1);
        assert.match(refused.stderr, /written by a newer version \(999-later\.sql\)/);
      }
    });

    test('of many that start together one migrates', async () => {
      await using folder = await temporaryFolder();
      const url = await newUrl(folder.path);
      const runs = await Promise.all(
        Array.from({ length: 6 }, () =>
          runPortico(['migrate', '--json'], { cwd: folder.path, env: { DATABASE_URL: url } }),
        ),
      );
      assert.deepEqual(
        runs.map(({ code, stderr }) => [code, stderr]),
        runs.map(() => [0, '']),
      );
      assert.deepEqual(
        runs.flatMap(({ stdout }) => JSON.parse(stdout).applied),
        FILES,
      );
    });
  });
}

test('what cannot be meant is said', async () => {
  await using folder = await temporaryFolder();
  const memory = await runCommand(['migrate', '--database-url', 'sqlite::memory:'], { cwd: folder.path });
  assert.match(memory.stderr, /new at every start/);
  assert.equal(memory.code, 2);
  const odd = await runCommand(['migrate', '--chek'], { cwd: folder.path });
  assert.match(odd.stderr, /did you mean --check\?/);
});
