import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import { PACKAGE_ROOT } from '../../src/core/package-root.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { migrationFiles } from '../../src/sql/migration-files.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { move } from '../support/move.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FAR = NOW + 1_000_000;
const skip = withoutPostgres ?? false;

/** The schema before jobs waited for their order, with open jobs: of the key `a` the third one is leased, the first dead. */
function earlier(engine: 'sqlite' | 'postgres'): string {
  const folder = new URL(`src/sql/${engine}/migrations/`, PACKAGE_ROOT);
  const files = migrationFiles(folder).filter((name) => name < '007');
  const jobs = ['a', 'b', 'a', 'a', null, 'b'].map((key, i) => {
    const text = key === null ? 'NULL' : `'${key}'`;
    const [status, owner] = [i === 0 ? 'dead' : 'open', i === 2 ? `'old'` : 'NULL'];
    return `
      INSERT INTO deliveries (id, source, data_pointer, body, received_at) VALUES ('${i}', '', '', '', ${NOW});
      INSERT INTO jobs (delivery, target, due_at, order_key, status, owner, attempts)
      VALUES (${i + 1}, 't', ${NOW}, ${text}, '${status}', ${owner}, 1);`;
  });
  const blob = engine === 'sqlite' ? `x''` : `''`;
  return `
    CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL);
    ${files
      .map(
        (name) => `${readFileSync(new URL(name, folder), 'utf8')};
      INSERT INTO migrations VALUES ('${name}', 1);`,
      )
      .join('\n')}
    ${jobs.join('\n').replaceAll(`'', '', '', ${NOW}`, `'', '', ${blob}, ${NOW}`)}`;
}

/** Does all jobs; returns the ids of their deliveries, and checks that none of one key run at once. */
async function drain(inbox: Inbox): Promise<readonly string[]> {
  const done: string[] = [];
  for (let idle = 0; idle < 2; ) {
    const jobs = await inbox.claim('t', 10, 'me', 5_000, { now: FAR });
    idle = jobs.length === 0 ? idle + 1 : 0;
    for (const job of jobs) {
      assert.ok(await inbox.settle(job, 'me', { kind: 'done' }, FAR));
      done.push(job.delivery.id);
    }
  }
  return done;
}

/** Opens a database of the earlier version, and replays what is dead while the process that has a lease is gone. */
async function upgraded(url: string): Promise<void> {
  await using database = await openDatabase(url);
  assert.ok(await database.deliveries.replay('0', [{ target: 't', orderKey: 'a' }], NOW));
  const done = await drain(database.inbox);
  assert.deepEqual(done.toSorted(), ['0', '1', '2', '3', '4', '5']);
  assert.ok(done.indexOf('1') < done.indexOf('5'));
  assert.ok(done.indexOf('2') < done.indexOf('3') && done.indexOf('0') < done.indexOf('3'));
}

describe('an upgrade of open jobs with order keys', () => {
  test('SQLite', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'old.db');
    using db = new DatabaseSync(file);
    db.exec(earlier('sqlite').replaceAll('BIGINT', 'INTEGER'));
    db.close();
    await upgraded(`sqlite:${file}`);
  });

  test('PostgreSQL', { skip }, async () => {
    const url = await postgresUrl();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(earlier('postgres'));
    await upgraded(url);
    await client.end();
  });

  test('a process of the earlier version goes on beside new ones', { skip }, async () => {
    const url = await postgresUrl();
    await using database = await openDatabase(url);
    const { inbox } = database;
    const jobs = [{ target: 't', orderKey: 'k' }];
    for (let i = 0; i < 3; i++) await inbox.append(newDelivery({ jobs }));
    const claim = () => inbox.claim('t', 10, 'me', 5_000, { now: FAR });
    const [head] = await claim();
    assert.deepEqual(await claim(), []);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`UPDATE jobs SET status = 'done', owner = NULL WHERE seq = $1`, [head?.job]);
    await client.end();
    assert.equal((await drain(inbox)).length, 2);
  });
});

test('open jobs with order keys go on in order after a move to PostgreSQL and back', { skip }, async () => {
  await using folder = await temporaryFolder();
  await using server: PostgresServer = await startPostgres();
  const [first, between, last] = [
    `sqlite:${join(folder.path, 'first.db')}`,
    await server.createDatabase(),
    `sqlite:${join(folder.path, 'last.db')}`,
  ];
  const jobs = [{ target: 't', orderKey: 'k' }];
  const sent = Array.from({ length: 6 }, () => newDelivery({ jobs }));
  {
    await using database = await openDatabase(first);
    for (const each of sent) await database.inbox.append(each);
  }
  await move(first, between);
  {
    await using database = await openDatabase(between);
    const [head, ...others] = await database.inbox.claim('t', 10, 'me', 5_000, { now: FAR });
    assert.ok(head && others.length === 0);
    assert.ok(await database.inbox.settle(head, 'me', { kind: 'done' }, FAR));
  }
  await move(between, last);
  await using database = await openDatabase(last);
  const [, ...left] = sent.map(({ id }) => id);
  const claims = await database.inbox.claim('t', 10, 'me', 5_000, { now: FAR });
  assert.equal(claims.length, 1, 'one of a key at a time');
  assert.ok(claims[0] && (await database.inbox.settle(claims[0], 'me', { kind: 'done' }, FAR)));
  assert.deepEqual([claims[0].delivery.id, ...(await drain(database.inbox))], left);
});
