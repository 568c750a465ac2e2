import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePort } from '../support/free-port.ts';
import { startPortico } from '../support/portico-process.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { runShown, settingsOf, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MAKE_USER = shownCommand('docs/POSTGRESQL.md', /^createuser/);
const MAKE_DATABASE = shownCommand('docs/POSTGRESQL.md', /^createdb/);
const SERVE = shownCommand('docs/POSTGRESQL.md', /^DATABASE_URL=postgres.* npm start$/);
const SERVE_WITH_TWO = shownCommand('docs/POSTGRESQL.md', /^DATABASE_URL='.* npm start$/);
const CHECK = shownCommand('docs/POSTGRESQL.md', /^portico database check/);

const MOVE = shownCommand('docs/SCALING.md', /^portico move/);
const SERVE_AFTER = shownCommand('docs/SCALING.md', /^DATABASE_URL=postgres.* portico$/);
const MIGRATE = shownCommands('docs/SCALING.md', /^portico migrate/);
const SERVE_AS_IT_IS = shownCommand('docs/SCALING.md', /^portico serve --no-migrate$/);
const QUERIES = shownCommands('docs/SCALING.md', /^psql .* -c /s);
const PARTITIONS = shownCommand('docs/decisions/043-retention-in-steps.md', /^psql .*<<'SQL'/);

const missing =
  (await missingPostgres()) ??
  (existsSync('/usr/bin/psql') ? false : 'needs psql (Debian package postgresql)');

describe('the guides of PostgreSQL', { skip: missing }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  test('the user and the database that the guide makes are all that a service needs', async () => {
    await using folder = await temporaryFolder();
    const place = {
      cwd: folder.path,
      env: { PGHOST: '127.0.0.1', PGPORT: String(server.port), PGUSER: 'portico', PGDATABASE: 'postgres' },
      // The server of a test has a superuser of the guide's name.
      names: { portico: 'shop' },
      input: 'secret\nsecret\n',
    };
    for (const made of [await runShown(MAKE_USER, place), await runShown(MAKE_DATABASE, place)]) {
      assert.equal(made.code, 0, made.stderr);
    }
    const rules = join(server.data, 'pg_hba.conf');
    await writeFile(rules, `host all shop all scram-sha-256\n${await readFile(rules, 'utf8')}`);
    await server.sql('SELECT pg_reload_conf()');

    const names = {
      'portico:secret@db.example.org:5432/portico': `shop:secret@127.0.0.1:${server.port}/shop`,
      'portico:secret@db1:5432,db2:5432/portico': `shop:secret@127.0.0.1:${await freePort()},127.0.0.1:${server.port}/shop`,
    };
    for (const command of [SERVE, SERVE_WITH_TWO]) {
      await using service = await startTestService({ env: settingsOf(command, names) });
      await service.listen();
      const body = '{"name":"Ada","email":"ada@example.org"}';
      assert.equal((await fetch(`${service.urls.rest}/users`, { method: 'POST', body })).status, 200);
    }
    const url = settingsOf(SERVE, names).DATABASE_URL;
    const owners = await server.sql("SELECT tableowner FROM pg_tables WHERE tablename = 'users'", url);
    assert.deepEqual(owners, [['shop']]);
    const host = { 'portico:secret@db.example.org/portico': `shop:secret@127.0.0.1:${server.port}/shop` };
    const checked = await runShown(CHECK, { cwd: folder.path, names: host });
    assert.match(checked.stdout, /^25 of 26 promises hold, 1 fails/m, checked.stdout);
    assert.equal(checked.code, 1);
    const wrong = settingsOf(SERVE, { ...names, 'shop:secret': 'shop:wrong' });
    await assert.rejects(startTestService({ env: wrong }), /password authentication failed/);
  });

  test('what a service has stored in SQLite is moved as the guide says', async () => {
    await using folder = await temporaryFolder();
    const url = new URL(await server.createDatabase());
    const names = { 'portico@db.example.com/portico': `portico@${url.host}${url.pathname}` };
    {
      await using before = await startTestService({
        env: { DATABASE_URL: `sqlite:${join(folder.path, 'portico.db')}` },
      });
      await before.listen();
      const body = '{"name":"Ada","email":"ada@example.org"}';
      await fetch(`${before.urls.rest}/users`, { method: 'POST', body });
    }
    const moved = await runShown(MOVE, { cwd: folder.path, names });
    assert.equal(moved.code, 0, moved.stderr);
    await using service = await startTestService({ env: settingsOf(SERVE_AFTER, names) });
    await service.listen();
    assert.match(await (await fetch(`${service.urls.rest}/users/1`)).text(), /"name":"Ada"/);
  });

  test('a schema is migrated in a step of its own, and then served', async () => {
    await using folder = await temporaryFolder();
    const env = { DATABASE_URL: await server.createDatabase() };
    const [look, migrate] = MIGRATE;
    assert.ok(look !== undefined && migrate !== undefined && MIGRATE.length === 2);
    const codes = [];
    for (const command of [look, migrate, look]) {
      codes.push((await runShown(command, { cwd: folder.path, env })).code);
    }
    const [, upToDate, pending] =
      /exit code (\d): up to date; (\d): migrations pending/.exec(look.command) ?? [];
    assert.deepEqual(codes, [Number(pending), 0, Number(upToDate)]);
    const [, ...args] = SERVE_AS_IT_IS.command.split(' ');
    await using service = startPortico({ cwd: folder.path, args, env });
    await service.ready();
  });

  test('the queries about growth work on the database of a service', async () => {
    await using folder = await temporaryFolder();
    const env = { DATABASE_URL: await server.createDatabase() };
    {
      await using service = await startTestService({ env });
      await service.listen();
      await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"x"}' });
    }
    await server.sql(
      `INSERT INTO remembered_keys (source, dedup_key, id, received_at) VALUES ('', 'old', 'old', 0)`,
      env.DATABASE_URL,
    );
    const printed = [];
    for (const query of QUERIES) {
      const { code, stdout, stderr } = await runShown(query, { cwd: folder.path, env });
      assert.equal(code, 0, `${query.command}\n${stderr}`);
      printed.push(stdout);
    }
    assert.match(printed[0] ?? '', /^ deliveries +\| +\d+ \| \d+ kB/m);
    const counts = `SELECT (SELECT count(*) FROM deliveries), (SELECT count(*) FROM remembered_keys)`;
    assert.deepEqual(
      await server.sql(counts, env.DATABASE_URL),
      [['0', '0']],
      'the last one empties the inbox',
    );
    await using service = await startTestService({ env });
    await service.listen();
    const sent = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"x"}' });
    assert.equal(sent.status, 200);
  });

  test('PostgreSQL refuses partitions by day for the reasons that the decision quotes', async () => {
    await using folder = await temporaryFolder();
    const env = { DATABASE_URL: await server.createDatabase() };
    await (await startTestService({ env }))[Symbol.asyncDispose]();
    const { stderr } = await runShown(PARTITIONS, { cwd: folder.path, env });
    const reasons = [...stderr.matchAll(/^ERROR: +(.*)$/gm)].map(([, reason = '']) => reason.slice(0, 58));
    const unique = 'unique constraint on partitioned table must include all pa';
    const decision = await readFile(
      join(import.meta.dirname, '../../docs/decisions/043-retention-in-steps.md'),
      'utf8',
    );
    assert.deepEqual(reasons, [unique, 'there is no unique constraint matching given keys for refe', unique]);
    assert.ok(
      decision.includes('"unique constraint on partitioned table must include all partitioning columns"'),
    );
    assert.ok(decision.includes('"there is no unique constraint matching given keys"'));
  });
});
