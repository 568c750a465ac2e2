import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { migrateRelations } from '../../src/sql/schema/migrate.ts';
import { postgresSession } from '../../src/sql/schema/postgres-session.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { column, relation } from '../support/relations/relations.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const title = { type: 'text', max: 40 };
const authors = { columns: { name: title } };
const before = { authors, books: { columns: { title } } };
/** What a process with the declaration before it does not notice. */
const after = {
  authors,
  books: {
    columns: {
      title,
      pages: { type: 'integer', default: 0 },
      author: { type: 'reference', to: 'authors', onDelete: 'null', nullable: true },
    },
    unique: [['title']],
    indexes: [['pages', 'title']],
  },
};

test('a service writes on while its tables are migrated, also while a step waits for a table', {
  skip: withoutPostgres,
}, async () => {
  await using folder = await temporaryFolder();
  const DATABASE_URL = await postgresUrl();
  const declare = (relations: object) =>
    writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations }));
  await declare(before);
  const start = (...args: readonly string[]) =>
    startPortico({ cwd: folder.path, args, env: { DATABASE_URL, INTERFACES: 'rest' } });
  await using service = start('serve');
  await service.ready();
  let written = 0;
  const write = async () => {
    const body = JSON.stringify({ title: `Book ${++written}` });
    const reply = await fetch(`${service.urls.rest}/books`, { method: 'POST', body });
    assert.equal(reply.status, 201, await reply.text());
  };
  await write();

  await declare(after);
  await using reader = await Connection.open(DATABASE_URL);
  await using observer = await Connection.open(DATABASE_URL);
  // Portico's connections end a transaction that is idle for seconds.
  const patient = 'SET idle_in_transaction_session_timeout = 0';
  for (const text of [patient, 'BEGIN', 'SELECT FROM books LIMIT 1']) await reader.run({ text }, []);
  const [[pid] = []] = await reader.run({ text: 'SELECT pg_backend_pid()' }, []);
  await using migration = start('migrate');
  const isWaiting = async () => {
    const text = `SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND ${pid} = ANY (pg_blocking_pids(pid))`;
    return (await observer.run({ text }, [])).length > 0;
  };
  // These would wait as long as the reader, who has not ended yet, if the step waited without a limit.
  for (let waits = 0; waits < 3; waits++) {
    await waitFor('a step to wait for the table', isWaiting);
    await write();
  }
  assert.equal(migration.child.exitCode, null, migration.stderr);
  await reader.run({ text: 'ROLLBACK' }, []);
  while (migration.child.exitCode === null) await write();
  assert.equal(await migration.exited(), 0, migration.stderr);
  assert.match(migration.stdout, /create index books__unique__title[\s\S]*add reference author_id/);
  await write();
  const [row] = await observer.run({ text: 'SELECT count(*) FROM books WHERE pages = 0' }, []);
  assert.equal(Number(row?.[0]), written);
});

test('other programs change rows while PostgreSQL fills a column that becomes required', {
  skip: withoutPostgres,
}, async () => {
  const url = await postgresUrl();
  await using migrating = await Connection.open(url);
  await using holder = await Connection.open(url);
  await using other = await Connection.open(url);
  const run = (text: string, on = other) => on.run({ text }, []);
  const session = postgresSession(migrating);
  const id = column('id', { kind: 'serial', open: false });
  const name = column('name', { kind: 'text', max: 20, fold: false });
  await migrateRelations(session, [relation('towns', { columns: [id, name] })], { rewrite: false });
  await run(`INSERT INTO towns (name) VALUES ('Ulm'), ('Bonn')`);
  const at = column('at', { kind: 'timestamp' }, { default: { kind: 'now' } });
  const migration = migrateRelations(session, [relation('towns', { columns: [id, name, at] })], {
    rewrite: false,
    async onStep({ fill }) {
      if (fill === undefined) return;
      await run('SET idle_in_transaction_session_timeout = 0', holder);
      await run('BEGIN', holder);
      await run('SELECT FROM towns WHERE id = 1 FOR UPDATE', holder);
    },
  });
  const [[pid] = []] = await run('SELECT pg_backend_pid()', holder);
  await waitFor('the fill to wait for the first row', async () => {
    const waiting = await run(
      `SELECT FROM pg_stat_activity WHERE ${pid} = ANY (pg_blocking_pids(pid)) AND query LIKE '%UPDATE%'`,
    );
    return waiting.length > 0;
  });
  await run(`UPDATE towns SET name = 'Köln' WHERE id = 2`);
  await run('ROLLBACK', holder);
  await migration;
  const rows = await run('SELECT name, at IS NOT NULL FROM towns ORDER BY id');
  assert.deepEqual(
    rows.map(([town, isFilled]) => [town, String(isFilled)[0]]),
    [
      ['Ulm', 't'],
      ['Köln', 't'],
    ],
  );
});

test('a service on SQLite makes a migration that would break it end with what to do', async () => {
  await using folder = await temporaryFolder();
  const env = { DATABASE_URL: `sqlite:${join(folder.path, 'test.db')}`, INTERFACES: 'rest' };
  const declare = (relations: object) =>
    writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations }));
  await declare(before);
  const start = (...args: readonly string[]) => startPortico({ cwd: folder.path, args, env });
  await using service = start('serve');
  await service.ready();
  const write = async () => {
    const reply = await fetch(`${service.urls.rest}/books`, { method: 'POST', body: '{"title":"Emma"}' });
    assert.equal(reply.status, 201, await reply.text());
  };
  await declare({ ...before, books: { columns: { title, pages: { type: 'integer', default: 0 } } } });
  await using additive = start('migrate');
  assert.equal(await additive.exited(), 0, additive.stderr);
  await write();
  await declare({ ...before, books: { columns: { title: { type: 'integer' } } } });
  await using rebuild = start('migrate', '--rewrite');
  assert.equal(await rebuild.exited(), 1);
  await declare({ ...before, books: { columns: { title: { ...title, max: 5 } } } });
  await using narrower = start('migrate', '--rewrite');
  assert.equal(await narrower.exited(), 1);
  assert.match(
    narrower.stderr,
    /^portico: A service runs on .*test\.db: process \d+ on .* Stop it first\.\n$/,
  );
  await write();
});
