import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { postgresUrl } from '../../../test/support/databases.ts';
import { type BareDatabase, bareEngines } from '../../../test/support/relations/engines.ts';
import {
  column,
  library,
  reference,
  relation,
  serial,
  text,
} from '../../../test/support/relations/hand-made.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Column, ColumnType, Relation } from '../../relations/relation.ts';
import { Connection } from '../postgres-pool/connection.ts';
import { dropUndeclared } from './drop.ts';
import { checkExitCode, describePlan, migrateRelations, planRelations, prepareRelations } from './migrate.ts';
import { announceDeclaration, postgresSession } from './postgres-session.ts';
import { sqliteSession } from './sqlite-session.ts';
import type { SchemaSession } from './steps.ts';
import { declaredTables, fingerprintOf } from './tables.ts';

function sessionOn(on: BareDatabase): SchemaSession {
  return on.engine === 'sqlite' ? sqliteSession(on.db) : postgresSession(on.db);
}

const integer = { kind: 'integer' } as const;
const price = (scale: number) => ({ kind: 'decimal', precision: 8, scale }) as const;
const id = column('id', serial);

/** Towns with people, whose rows a rebuild of towns must not delete. */
function towns(columns: readonly Column[], more: Partial<Relation> = {}): readonly Relation[] {
  return [
    relation('towns', [id, ...columns], more),
    relation('people', [id, column('town_id', integer)], {
      references: [reference('town', 'towns', 'cascade')],
    }),
  ];
}
const name = column('name', text(20), { nullable: true });
const cost = column('cost', price(2), { nullable: true });

async function filled(on: BareDatabase): Promise<SchemaSession> {
  const session = sessionOn(on);
  await prepareRelations(session, towns([name, cost]), 'additive');
  const unit = on.engine === 'sqlite' ? 1 : 100;
  await on.run(
    `INSERT INTO towns (name, cost) VALUES ('Ulm', ${1250 / unit}), ('Bonn', NULL), (NULL, ${500 / unit})`,
  );
  await on.run('INSERT INTO people (town_id) VALUES (1), (1), (2)');
  return session;
}

const all = { rewrite: true };
const none = { kind: 'value', value: 'none' } as const;

for (const [engine, open] of Object.entries(bareEngines)) {
  describe(engine, () => {
    test('a start creates tables, adds what is additive, and runs nothing if any other step is left', async () => {
      await using db = await open();
      const session = sessionOn(db);
      await assert.rejects(async () => prepareRelations(session, library, 'never'), {
        code: 'DATABASE_OPEN',
        message: /books: create table.*portico migrate --check/,
      });
      assert.deepEqual(await prepareRelations(session, library, 'additive'), []);
      assert.deepEqual(await prepareRelations(session, library, 'never'), []);
      const [books, ...rest] = library;
      assert.ok(books !== undefined);
      const more = { ...books, columns: [...books.columns, column('subtitle', text(9), { nullable: true })] };
      const unique = { ...more, unique: [...more.unique, ['title']] };
      assert.equal(checkExitCode(await planRelations(session, library)), 0);
      assert.equal(checkExitCode(await planRelations(session, [more, ...rest])), 3);
      assert.equal(checkExitCode(await planRelations(session, [unique, ...rest])), 4);
      await assert.rejects(async () => prepareRelations(session, [unique, ...rest], 'additive'), {
        message: /create index books__unique__title/,
      });
      assert.equal(checkExitCode(await planRelations(session, [more, ...rest])), 3, 'nothing was run');
      await prepareRelations(session, [more, ...rest], 'additive');
      assert.deepEqual(await prepareRelations(session, library, 'additive'), ['books.subtitle']);
    });

    test('a table and a column are renamed by was, with their rows, and what refers to them', async () => {
      await using db = await open();
      const session = await filled(db);
      const [, people] = towns([]);
      assert.ok(people !== undefined);
      const cities = [
        relation('cities', [id, column('title', name.type, { nullable: true, was: 'name' }), cost], {
          was: 'towns',
        }),
        { ...people, references: [reference('town', 'cities', 'cascade')] },
      ];
      const plan = await planRelations(session, cities);
      assert.equal(checkExitCode(plan), 4);
      assert.ok(plan.steps.every((step) => step.class !== 'rewriting'));
      await migrateRelations(session, cities, { rewrite: false });
      assert.deepEqual(await planRelations(session, cities), { steps: [], undeclared: [] });
      assert.deepEqual(await db.rows('SELECT title FROM cities ORDER BY id'), [['Ulm'], ['Bonn'], [null]]);
      await db.run('DELETE FROM cities WHERE id = 1');
      assert.deepEqual(
        (await db.rows('SELECT count(*) FROM people')).map(([n]) => Number(n)),
        [1],
      );
      // The old names are free.
      await prepareRelations(
        session,
        [...cities, relation('towns', [id, name], { indexes: [['name']] })],
        'additive',
      );
    });

    test('a check or a unique that is replaced stays if rows refuse the new one', async () => {
      await using db = await open();
      const session = await filled(db);
      const before = towns([name, cost], { unique: [['name', 'cost']] });
      await migrateRelations(session, before, all);
      await db.run(`INSERT INTO towns (name, cost) VALUES ('Ulm', 70)`);
      const refusedAfterwards = [
        towns([column('name', text(3), { nullable: true }), cost], { unique: [['name', 'cost']] }),
        towns([name, cost], { unique: [['name']] }),
      ];
      for (const after of refusedAfterwards) {
        await assert.rejects(async () => migrateRelations(session, after, all), { name: 'SchemaError' });
        assert.deepEqual(await planRelations(session, before), { steps: [], undeclared: [] });
      }
    });

    test('rows that a step would refuse are counted, and five are named', async () => {
      await using db = await open();
      const session = await filled(db);
      const required = towns([{ ...name, nullable: false }, cost]);
      await assert.rejects(async () => migrateRelations(session, required, all), {
        message:
          /^towns: cannot .* because of 1 row with no value in name, by id: 3\. Give each a value, or declare a default for name\.$/,
      });
      const code = column('code', text(3));
      await assert.rejects(async () => migrateRelations(session, towns([name, cost, code]), all), {
        message:
          /^towns: cannot .*add column code because of 3 rows without a value for code, .* Declare a default for code, or make it nullable until all rows have a value\.$/,
      });
      const { steps, undeclared } = await planRelations(session, towns([name, cost]));
      assert.deepEqual([steps, undeclared], [[], []], 'the column is not left behind');
      const short = towns([column('name', text(3), { nullable: true }), cost]);
      await assert.rejects(async () => migrateRelations(session, short, all), {
        message: /1 row with a value in name that the column does not allow, by id: 2\./,
      });
      await db.run("INSERT INTO towns (name) VALUES ('Ulm'), ('Ulm'), ('Ulm'), ('Ulm'), ('Ulm'), ('ULM')");
      await assert.rejects(
        async () => migrateRelations(session, towns([name, cost], { unique: [['name']] }), all),
        {
          message: /6 rows with the same name as another row, by id: 1 4 5 6 7 \.\.\./,
        },
      );
      const referring = towns([name, cost, column('twin_id', integer, { nullable: true })]);
      await migrateRelations(session, referring, all);
      await db.run('UPDATE towns SET twin_id = 77 WHERE id = 2');
      const [first, people] = referring;
      assert.ok(first !== undefined && people !== undefined);
      const twins = [{ ...first, references: [reference('twin', 'towns', 'null')] }, people];
      await assert.rejects(async () => migrateRelations(session, twins, all), {
        message: /1 row whose twin_id refers to no row of towns, by id: 2\./,
      });
      await db.run('UPDATE towns SET twin_id = 1 WHERE id = 2');
      await migrateRelations(session, twins, all);
      assert.equal(checkExitCode(await planRelations(session, twins)), 0);
    });

    test('a table written anew keeps rows, numbers, undeclared columns and the rows that refer to it', async () => {
      await using db = await open();
      const session = await filled(db);
      await db.run('DELETE FROM towns WHERE id = 3');
      const changed = towns([
        column('cost', price(3), { nullable: true }),
        column('area', integer, { default: { kind: 'value', value: 7 } }),
        column('seen', { kind: 'timestamp' }, { default: { kind: 'now' } }),
      ]);
      await assert.rejects(async () => migrateRelations(session, changed, { rewrite: false }), {
        message: /--rewrite/,
      });
      const [removed] = await db.rows('SELECT max(id) FROM towns');
      assert.equal(Number(removed?.[0]), 2);
      await migrateRelations(session, changed, all);
      assert.deepEqual(await planRelations(session, changed), { steps: [], undeclared: ['towns.name'] });
      const cost = engine === 'sqlite' ? 12_500 : '12.500';
      assert.deepEqual(await db.rows('SELECT name, cost, area FROM towns ORDER BY id'), [
        ['Ulm', cost, 7],
        ['Bonn', null, 7],
      ]);
      assert.deepEqual(await db.rows('SELECT id FROM towns WHERE seen IS NULL'), []);
      const [added] = await db.rows(
        'INSERT INTO towns (cost, seen) SELECT cost, seen FROM towns LIMIT 1 RETURNING id',
      );
      assert.equal(Number(added?.[0]), 4, 'no number is used again');
      assert.deepEqual(
        (await db.rows('SELECT count(*) FROM people')).map(([n]) => Number(n)),
        [3],
      );
      await assert.rejects(
        async () => migrateRelations(session, towns([column('cost', price(0), { nullable: true })]), all),
        {
          message: /2 rows whose cost would change as a decimal0, by id: 1 4\./,
        },
      );
      await assert.rejects(
        async () => migrateRelations(session, towns([column('cost', { kind: 'json', maxBytes: 9 })]), all),
        {
          message: /values of cost cannot become json from decimal3/,
        },
      );
    });

    test('a plan that stops after any of its statements is completed by the next one', async () => {
      const before = towns([name, cost]);
      const after = towns(
        [
          column('name', text(30), { default: { kind: 'value', value: 'none' } }),
          column('cost', price(3), { nullable: true }),
          column('code', { kind: 'uuid' }, { default: { kind: 'v7' } }),
          column('twin_id', integer, { nullable: true }),
        ],
        { unique: [['code']], indexes: [['name']], references: [reference('twin', 'towns', 'null')] },
      );
      for (let stop = 0, isDone = false; !isDone; stop++) {
        await using db = await open();
        const session = await filled(db);
        assert.equal(checkExitCode(await planRelations(session, before)), 0);
        let made = 0;
        isDone = true;
        for (const step of (await planRelations(session, after)).steps) {
          const sql = step.sql.slice(0, Math.max(0, stop - made));
          made += step.sql.length;
          if (sql.length > 0) await session.apply({ ...step, sql });
          if (sql.length === step.sql.length) continue;
          isDone = false;
          break;
        }
        await migrateRelations(session, after, all);
        assert.deepEqual((await planRelations(session, after)).steps, [], `after ${stop} statements`);
        assert.deepEqual(
          (await db.rows('SELECT name FROM towns WHERE code IS NOT NULL ORDER BY id')).flat(),
          ['Ulm', 'Bonn', 'none'],
        );
      }
    });

    test('a start makes all steps but drops if it may, and says why it cannot', async () => {
      await using db = await open();
      const session = await filled(db);
      const price = column('cost', { kind: 'decimal', precision: 9, scale: 3 }, { nullable: true });
      const changed = towns([price], { indexes: [['cost']] });
      await assert.rejects(async () => prepareRelations(session, changed, 'additive'), {
        code: 'DATABASE_OPEN',
        message: /cost/,
      });
      assert.deepEqual(await prepareRelations(session, changed, 'all-but-drops'), ['towns.name']);
      assert.equal(checkExitCode(await planRelations(session, changed)), 0);
      const required = towns([{ ...price, nullable: false }]);
      await assert.rejects(async () => prepareRelations(session, required, 'all-but-drops'), {
        code: 'DATABASE_OPEN',
        message: /because of 1 row with no value in cost, by id: 2\./,
      });
    });

    test('a step that stops writes for longer than allowed is refused before the first step', async () => {
      await using db = await open();
      const session = await filled(db);
      const changed = towns([
        name,
        column('cost', { kind: 'decimal', precision: 9, scale: 3 }, { nullable: true }),
      ]);
      const large: SchemaSession = { ...session, rowsOf: () => 3_000_000 };
      await assert.rejects(migrateRelations(large, changed, all), {
        code: 'SCHEMA_STEP',
        message: /^towns: .* takes about \d+ s, in which nothing can .*portico migrate --max-pause \d+"/,
      });
      assert.match(
        await describePlan(large, await planRelations(session, changed)),
        /rows in about \d+ s, locks/,
      );
      assert.equal(checkExitCode(await planRelations(session, changed)), 4);
      await migrateRelations(large, changed, { ...all, maxPause: 100 });
      assert.equal(checkExitCode(await planRelations(session, changed)), 0);
    });

    test('wider bounds are additive steps that write no row anew, and narrower ones count rows', async () => {
      await using db = await open();
      const session = sessionOn(db);
      const typed = (types: Readonly<Record<string, ColumnType>>) => [
        relation('bounds', [
          column('id', serial),
          ...Object.entries(types).map(([name, type]) => column(name, type, { nullable: true })),
        ]),
      ];
      const narrow = typed({
        words: text(3),
        data: { kind: 'bytes', max: 2 },
        tags: { kind: 'json', maxBytes: 9 },
        pages: { kind: 'integer', min: 1, max: 9 },
        size: { kind: 'bigint', min: -3n, max: 2n ** 62n },
        weight: { kind: 'number', min: 0.5, max: 1.5 },
        cost: { kind: 'decimal', precision: 4, scale: 2, min: '0.50' },
        sort: { kind: 'enum', values: ["it's", 'b'] },
      });
      const wide = typed({
        words: text(4),
        data: { kind: 'bytes', max: 10 },
        tags: { kind: 'json', maxBytes: 10 },
        pages: { kind: 'integer', max: 10 },
        size: { kind: 'bigint', min: -(2n ** 63n) },
        weight: { kind: 'number', min: -1e300 },
        cost: { kind: 'decimal', precision: 12, scale: 2, min: '-7.25' },
        sort: { kind: 'enum', values: ['b', 'c', "it's"] },
      });
      await prepareRelations(session, narrow, 'additive');
      const [bytes, cost] = engine === 'sqlite' ? ["x'00'", 50] : ["'\\x00'", 0.5];
      await db.run(
        `INSERT INTO bounds (words, data, tags, pages, size, weight, cost, sort) VALUES ('abc', ${bytes}, '[]', 9, 4611686018427387904, 1.5, ${cost}, 'it''s')`,
      );
      const plan = await planRelations(session, wide);
      assert.equal(checkExitCode(plan), 3, await describePlan(session, plan));
      assert.ok(plan.steps.every((step) => ['nothing', 'a moment'].includes(step.lock)));
      const file = "SELECT pg_relation_filenode('bounds')";
      const [before] = engine === 'sqlite' ? [] : await db.rows(file);
      await prepareRelations(session, wide, 'additive');
      if (engine === 'postgres')
        assert.deepEqual((await db.rows(file))[0], before, 'no row was written anew');
      assert.deepEqual(await planRelations(session, wide), { steps: [], undeclared: [] });
      const longer = `INSERT INTO bounds (words, pages, size, weight, cost, sort) VALUES ('abcd', -5, -9223372036854775807, -5, ${engine === 'sqlite' ? -725 : '-7.25'}, 'c')`;
      await db.run(longer);
      await assert.rejects(db.run("INSERT INTO bounds (words) VALUES ('abcde')"));
      await assert.rejects(db.run("INSERT INTO bounds (sort) VALUES ('d')"));
      assert.equal(checkExitCode(await planRelations(session, narrow)), 4);
      await assert.rejects(async () => migrateRelations(session, narrow, all), {
        message: /because of 1 row .*, by id: 2\./,
      });
      await db.run('DELETE FROM bounds WHERE id = 2');
      await migrateRelations(session, narrow, all);
      assert.deepEqual(await planRelations(session, narrow), { steps: [], undeclared: [] });
      await assert.rejects(db.run(longer));
      assert.deepEqual(await db.rows('SELECT words, sort FROM bounds'), [['abc', "it's"]]);
    });

    test('what is dropped is named, no longer declared, and in a file before', async () => {
      await using folder = await temporaryFolder();
      await using db = await open();
      const session = await filled(db);
      const [, people] = towns([]);
      assert.ok(people !== undefined);
      const left = towns([name]);
      const drop = (names: readonly string[], relations = left) =>
        dropUndeclared(session, relations, names, folder.path);
      await assert.rejects(drop(['towns.cost', 'towns.name']), {
        message: /^towns\.name cannot be dropped.*: towns\.cost\.$/,
      });
      const full = {
        write() {},
        complete() {
          throw new Error('full disk');
        },
      };
      const declared = declaredTables(session.engine, left).find((table) => table.name === 'towns');
      const loss = { table: 'towns', column: 'cost', declared };
      await assert.rejects(async () => session.drop(loss, full), /full disk/);
      assert.equal((await db.rows('SELECT cost FROM towns')).length, 3, 'without its file it stays');
      const [path = ''] = await drop(['towns.cost']);
      assert.deepEqual(
        readFileSync(path, 'utf8')
          .trim()
          .split('\n')
          .map((line): unknown => JSON.parse(line)),
        [
          { id: 1, cost: '12.50' },
          { id: 2, cost: null },
          { id: 3, cost: '5.00' },
        ],
      );
      assert.deepEqual(await planRelations(session, left), { steps: [], undeclared: [] });
      assert.deepEqual(
        (await db.rows('SELECT count(*) FROM people')).map(([n]) => Number(n)),
        [3],
      );
      const alone = [{ ...people, columns: [id], references: [] }];
      // People still refer to towns.
      await assert.rejects(drop(['towns'], alone));
      assert.equal((await db.rows('SELECT id FROM towns')).length, 3);
      await drop(['people.town_id'], alone);
      const [towns_ = ''] = await drop(['towns'], alone);
      assert.equal(readFileSync(towns_, 'utf8').split('\n')[1], '{"id":2,"name":"Bonn","_version":"0"}');
      await assert.rejects(drop(['towns'], alone), {
        code: 'SCHEMA_STEP',
        message: /there is nothing else/,
      });
    });

    test('a plan is shown with the class, the rows, the lock and the SQL of each step', async () => {
      await using db = await open();
      const session = await filled(db);
      const shown = await describePlan(
        session,
        await planRelations(session, towns([name], { indexes: [['name']] })),
      );
      assert.match(
        shown,
        /^towns: create index towns__index__name \(additive, reads about \d+ rows in under 1 s, locks \w+\)\n {2}CREATE INDEX/,
      );
      assert.match(shown, /\ntowns\.cost is not declared; .*: portico migrate --drop towns\.cost\n$/);
    });
  });
}

test('a migration of SQLite plans again after another process has changed the tables', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  using db = new DatabaseSync(file);
  using other = new DatabaseSync(file);
  const session = sqliteSession(db);
  await prepareRelations(session, towns([name]), 'additive');
  const changed = towns([{ ...name, was: undefined, nullable: false, default: none }, cost], {
    indexes: [['name']],
  });
  const seen: string[] = [];
  const made = await migrateRelations(session, changed, {
    rewrite: true,
    async onStep({ what }) {
      if (seen.push(what) === 1) await migrateRelations(sqliteSession(other), changed, all);
    },
  });
  assert.deepEqual([seen.length, made], [1, []], 'the other process has made all steps');
  assert.equal(checkExitCode(await planRelations(session, changed)), 0);
});

test('an index of PostgreSQL whose build failed is dropped and made anew', {
  skip: bareEngines.postgres === undefined,
}, async () => {
  const open = bareEngines.postgres;
  assert.ok(open !== undefined);
  await using db = await open();
  const session = await filled(db);
  await db.run("UPDATE towns SET name = 'Ulm'");
  const sql = 'CREATE UNIQUE INDEX CONCURRENTLY "towns__unique__name" ON towns (name)';
  await assert.rejects(db.run(sql), /could not create unique index/);
  const unique = towns([name, cost], { unique: [['name']] });
  await db.run('UPDATE towns SET name = id::text');
  const steps = await migrateRelations(session, unique, { rewrite: false });
  assert.deepEqual(
    steps.map(({ what }) => what),
    ['drop the unfinished index towns__unique__name', 'create index towns__unique__name'],
  );
  assert.equal(checkExitCode(await planRelations(session, unique)), 0);
});

test('what breaks a live process of another declaration waits until it has ended', {
  skip: bareEngines.postgres === undefined,
}, async () => {
  const open = bareEngines.postgres;
  assert.ok(open !== undefined);
  await using db = await open();
  const session = await filled(db);
  await db.run("UPDATE towns SET name = 'Ulm'");
  const before = towns([name, cost]);
  const required = towns([{ ...name, nullable: false }, cost]);
  const [[schema] = []] = await db.rows('SELECT current_schema()::text');
  assert.ok(db.engine === 'postgres');
  {
    await using other = await Connection.open(await postgresUrl());
    await other.run({ text: `SET search_path = ${schema}` }, undefined);
    await announceDeclaration(other, before);
    await using stranger = await Connection.open(await postgresUrl());
    await announceDeclaration(stranger, []);
    await announceDeclaration(db.db, required);
    const refused = { message: /^1 running process declares other relations/ };
    await assert.rejects(async () => migrateRelations(session, required, all), refused);
    await assert.rejects(dropUndeclared(session, towns([name]), ['towns.cost'], '/nowhere'), {
      message: /^2 running processes declare/,
    });
    await migrateRelations(session, towns([name, cost], { indexes: [['name']] }), all);
    await assert.rejects(async () => migrateRelations(session, required, all), refused);
  }
  await waitFor(
    'the server to end the session',
    async () => (await session.conflict(fingerprintOf(required), 'migration')) === undefined,
  );
  await migrateRelations(session, required, all);
});
