import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { MoveEnd } from '../../src/sql/move/end.ts';
import { moveDatabase } from '../../src/sql/move/move.ts';
import { movedWith } from '../../src/sql/move/tables.ts';
import { migrateDatabase, openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { move, refused } from '../support/move.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { makeRandomRows, rowsOf } from '../support/random-rows.ts';
import { settleAll, storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FAR = NOW + 1_000_000;

/** Gives two users each other's name. */
const SWAP = `UPDATE users SET name = CASE id WHEN 1 THEN (SELECT name FROM users WHERE id = 7)
  ELSE (SELECT name FROM users WHERE id = 1) END WHERE id IN (1, 7)`;

describe('moving a database', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresDatabases;
  before(async () => {
    server = await sharedPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  // The first has more of both than fit into a batch.
  for (const [seed, users, deliveries] of [
    [1, 6_000, 250],
    [2, 500, 60],
  ] as const) {
    test(`every row comes back from PostgreSQL as it went there, seed ${seed}`, async () => {
      await using folder = await temporaryFolder();
      const [first, second] = ['first.db', 'second.db'].map((name) => join(folder.path, name)) as [
        string,
        string,
      ];
      await makeRandomRows(first, seed, { users, deliveries });
      const given = rowsOf(first);
      const [a, b] = [await server.createDatabase(), await server.createDatabase()];

      const went = await move(`sqlite:${first}`, a);
      assert.equal(went.tables?.users.rows, given.users?.length);
      const between = await move(a, b);
      const back = await move(b, `sqlite:${second}`);
      assert.deepEqual(rowsOf(second), given);
      assert.deepEqual(rowsOf(first), given, 'the source is as it was');
      assert.deepEqual([between.tables, back.tables], [went.tables, went.tables]);
      using db = new DatabaseSync(second);
      assert.equal(db.prepare('SELECT count(*) AS n FROM jobs WHERE owner IS NOT NULL').get()?.n, 0);
    });
  }

  for (const target of ['sqlite', 'postgres'] as const) {
    test(`new rows in ${target} get fresh ids behind those that were ever given`, async () => {
      await using folder = await temporaryFolder();
      const file = join(folder.path, 'source.db');
      const users = 300;
      await makeRandomRows(file, 4, { users, deliveries: 50 });
      const to =
        target === 'sqlite' ? `sqlite:${join(folder.path, 'target.db')}` : await server.createDatabase();
      await move(`sqlite:${file}`, to);
      const counters = rowsOf(file).counters as readonly { name: string; seq: number }[];
      await using database = await openDatabase(to);
      assert.equal(await database.users.create({ name: 'new', email: 'a@b' }), users + 1);
      const id = randomUUIDv7();
      await storeDeliveries(database, 'late', 1, { id });
      const last = counters.find(({ name }) => name === 'deliveries')?.seq ?? 0;
      assert.equal((await database.deliveries.find(id))?.seq, last + 1);
      assert.deepEqual(
        (await database.inbox.claim('handler:late', 9, 'me', 1e15, { now: Date.now() + 9 })).length,
        1,
      );
      assert.ok((await database.inbox.size()) > 0);
    });
  }

  test('what services stored goes on in the target: open, dead, leased, known by their keys', async () => {
    await using folder = await temporaryFolder();
    const postgres = await server.createDatabase();
    const dedupKey = `sha256:${'long'.repeat(1_000)}`;
    let sizes = 0;
    {
      await using database = await openDatabase(postgres);
      await storeDeliveries(database, 'dead', 20);
      await settleAll(database, 'dead', 'dead');
      await storeDeliveries(database, 'held', 20);
      await database.inbox.claim('handler:held', 5, 'gone', 41, { now: Date.now() + 9 });
      await storeDeliveries(database, 'known', 1, { dedupKey, source: 's\0\u0010' });
      sizes = await database.inbox.size();
    }
    const sqlite = `sqlite:${join(folder.path, 'target.db')}`;
    await move(postgres, sqlite);
    {
      using db = new DatabaseSync(join(folder.path, 'target.db'), { readOnly: true, timeout: 5_000 });
      const ends = db
        .prepare(
          'SELECT max(last_seq) AS zoned, (SELECT max(seq) FROM deliveries) AS last FROM delivery_zones',
        )
        .get();
      assert.ok(ends?.last);
      assert.equal(ends.zoned, ends.last);
    }
    const back = await server.createDatabase();
    await move(sqlite, back);
    for (const url of [sqlite, back]) {
      await using database = await openDatabase(url);
      const held = await database.inbox.claim('handler:held', 99, 'me', 1e15, { now: Date.now() + 1_000 });
      assert.deepEqual(held.map(({ attempt }) => attempt).sort(), [
        ...Array(15).fill(1),
        ...Array(5).fill(2),
      ]);
      assert.equal((await database.inbox.backlog()).dead, 20);
      const again = { source: 's\0\u0010', dedupKey, jobs: [] };
      await storeDeliveries(database, 'known', 1, again);
      assert.equal((await database.deliveries.list({ event: 'known' }, 9)).items.length, 1, 'a duplicate');
      assert.equal(await database.inbox.size(), sizes);
    }
  });

  test('a move that stopped goes on, and nothing else opens its target before', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'source.db');
    await makeRandomRows(file, 5, { users: 6_000, deliveries: 60 });
    const other = join(folder.path, 'other.db');
    await makeRandomRows(other, 6, { users: 10, deliveries: 10 });
    for (const to of [`sqlite:${join(folder.path, 'target.db')}`, await server.createDatabase()]) {
      const stopped = await move(`sqlite:${file}`, to, { step: 'copy', after: 5_000 });
      assert.deepEqual(stopped, { resumed: false, alreadyComplete: false, tables: undefined });
      await assert.rejects(async () => openDatabase(to), /a move into it is unfinished.*portico move/);
      await assert.rejects(migrateDatabase(to), /a move into it is unfinished/);
      await assert.rejects(move(to, `sqlite:${join(folder.path, 'no.db')}`), /a move into it is unfinished/);
      await assert.rejects(move(`sqlite:${other}`, to), refused(/a part of another database.*--restart/));

      const compared = await move(`sqlite:${file}`, to, { step: 'compare', after: 1 });
      assert.deepEqual(compared, { resumed: true, alreadyComplete: false, tables: undefined });
      await assert.rejects(async () => openDatabase(to), /a move into it is unfinished/);
      const { resumed, tables } = await move(`sqlite:${file}`, to);
      assert.equal(resumed, true);
      assert.equal(tables?.users.rows, rowsOf(file).users?.length);
      await (await openDatabase(to))[Symbol.asyncDispose]();
    }
  });

  const tamperings: readonly (readonly [string, string, RegExp])[] = [
    [
      'a changed text',
      `UPDATE users SET name = name || 'x' WHERE id = 18`,
      /users: \d+ rows in both, but with/,
    ],
    [
      'a lost row',
      'DELETE FROM users WHERE id = 18',
      /users: (\d+) rows in the source, (?!\1)\d+ in the target/,
    ],
    ['two rows for each other', SWAP, /users: .*different values/],
  ];
  for (const [what, sql, pattern] of tamperings) {
    test(`${what} in the target is found, and --restart mends it`, async () => {
      await using folder = await temporaryFolder();
      const file = join(folder.path, 'source.db');
      await makeRandomRows(file, 7, { users: 6_000, deliveries: 20 });
      const target = join(folder.path, 'target.db');
      const postgres = await server.createDatabase();
      const changes: readonly (readonly [string, () => unknown])[] = [
        [
          `sqlite:${target}`,
          () => {
            using db = new DatabaseSync(target);
            db.exec(sql);
          },
        ],
        [postgres, () => server.sql(sql, postgres)],
      ];
      for (const [to, change] of changes) {
        await move(`sqlite:${file}`, to, { step: 'copy', after: 5_000 });
        await change();
        await assert.rejects(move(`sqlite:${file}`, to), refused(pattern));
        await assert.rejects(async () => openDatabase(to), /a move into it is unfinished/);
        const { resumed, tables } = await move(`sqlite:${file}`, to, undefined, true);
        assert.equal(resumed, false);
        assert.ok((tables?.users.rows ?? 0) > 5_000);
      }
    });
  }

  test('a body, a job and a lost delivery are compared too', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'source.db');
    await makeRandomRows(file, 8, { users: 10, deliveries: 100 });
    for (const [sql, pattern] of [
      [
        'UPDATE deliveries SET body = set_byte(body, 0, 255 - get_byte(body, 0)) WHERE octet_length(body) > 9',
        /deliveries: /,
      ],
      ['UPDATE jobs SET attempts = attempts + 1 WHERE seq = 2', /jobs: /],
      [`UPDATE attempts SET answer = 'x' WHERE seq = (SELECT min(seq) FROM attempts)`, /attempts: /],
      [`SELECT setval(pg_get_serial_sequence('jobs', 'seq'), 1)`, undefined],
    ] as const) {
      const to = await server.createDatabase();
      await move(`sqlite:${file}`, to, { step: 'compare', after: 1 });
      await server.sql(sql, to);
      // The numbers that are given next are set again before they are compared.
      if (pattern === undefined) await move(`sqlite:${file}`, to);
      else await assert.rejects(move(`sqlite:${file}`, to), refused(pattern));
    }
  });

  test('a connection that is lost, and a text that cannot be stored, end it with what to do', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'source.db');
    await makeRandomRows(file, 11, { users: 30_000, deliveries: 10 });
    const to = await server.createDatabase();
    {
      await using source = await MoveEnd.open(`sqlite:${file}`, 'source');
      await using target = await MoveEnd.open(to, 'target');
      const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'portico move' AND datname = current_database()`;
      let cutting: Promise<unknown> | undefined;
      const lost = moveDatabase(source, target, {
        signal: new AbortController().signal,
        restart: false,
        onProgress(_step, done) {
          if (done > 0) cutting ??= server.sql(cut, to);
        },
      });
      await assert.rejects(
        lost,
        refused(/stopped in users, after key \d+: .*fix the cause and run it again/),
      );
      await cutting;
    }
    {
      using db = new DatabaseSync(file);
      db.exec(`UPDATE users SET name = 'a' || char(0) WHERE id = (SELECT max(id) FROM users)`);
    }
    await assert.rejects(
      move(`sqlite:${file}`, to),
      refused(/stopped in users, after key \d+: invalid byte/),
    );
    {
      using db = new DatabaseSync(file);
      db.exec(`UPDATE users SET name = 'a' WHERE id = (SELECT max(id) FROM users)`);
    }
    assert.equal((await move(`sqlite:${file}`, to)).resumed, true);
  });

  test('a source that was written to between two parts of a move is found out', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'source.db');
    await makeRandomRows(file, 9, { users: 6_000, deliveries: 10 });
    const to = await server.createDatabase();
    await move(`sqlite:${file}`, to, { step: 'copy', after: 5_000 });
    {
      await using database = openDatabase(`sqlite:${file}`);
      assert.equal(await database.users.update(1, { name: 'changed', email: 'a@b' }), true);
    }
    await assert.rejects(move(`sqlite:${file}`, to), refused(/users: .*was written to.*Stop the writer/));
  });

  test('every column of every table is moved, but for what is known', async () => {
    const url = await server.createDatabase();
    await migrateDatabase(url);
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'schema.db');
    await migrateDatabase(`sqlite:${file}`);
    using db = new DatabaseSync(file);
    const moved = movedWith([]).flatMap(({ name, columns }) =>
      columns.map((column) => `${name}.${column.name}`),
    );
    // Who runs which target is written again by the processes that do; zones, sizes and what waits are made of what was
    // moved; each database has secrets and a count of changes of its own, and keys of creates are kept for a day.
    const own = `'migrations', 'targets', 'delivery_zones', 'inbox_size', 'retention_cursors', 'secrets', 'user_changes',
      'idempotency_keys', 'imports', 'user_events', 'user_feed', 'user_relay'`;
    const inSqlite = db
      .prepare(`SELECT m.name || '.' || c.name AS name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT IN (${own})`)
      .all()
      .map(({ name }) => String(name));
    const inPostgres = await server.sql(
      `SELECT table_name || '.' || column_name FROM information_schema.columns
       WHERE table_schema = 'public' AND table_name NOT IN (${own})`,
      url,
    );
    const left = ['jobs.owner', 'jobs.claimed_at', 'jobs.blocked'];
    assert.deepEqual(inSqlite.sort(), [...moved, ...left].sort());
    assert.deepEqual(inPostgres.flat().map(String).sort(), [...moved, ...left].sort());
  });

  test('open jobs with order keys go on in order in the target, there and back', async () => {
    await using folder = await temporaryFolder();
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
    const order: string[] = [];
    for (;;) {
      const [job, ...others] = await database.inbox.claim('t', 10, 'me', 5_000, { now: FAR });
      if (job === undefined) break;
      assert.equal(others.length, 0, 'one of a key at a time');
      assert.ok(await database.inbox.settle(job, 'me', { kind: 'done' }, FAR));
      order.push(job.delivery.id);
    }
    assert.deepEqual(order, left);
  });
});
