import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { codecOf } from '../../src/relations/codecs.ts';
import type { Relation } from '../../src/relations/relation.ts';
import { migrateDatabase, openDatabase, withSchema } from '../../src/sql/open.ts';
import { migrateRelations, planRelations } from '../../src/sql/schema/migrate.ts';
import { withoutPostgres } from '../support/databases.ts';
import { move, refused } from '../support/move.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { rounds } from '../support/proof-settings.ts';
import { bodies, declarationsWithUsers } from '../support/relations/random-declarations.ts';
import { LIBRARY, SPECIMENS } from '../support/relations/relations.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

async function makeTables(url: string, relations: readonly Relation[]): Promise<void> {
  await migrateDatabase(url);
  await withSchema(url, 'migrate', (session) => migrateRelations(session, relations, { rewrite: false }));
}

const quoted = (name: string) => `"${name}"`;

/** Random rows, also with references to rows that come later, and with numbers that are gone. */
function fill(file: string, relations: readonly Relation[], draw: fc.GeneratorValue): void {
  using db = new DatabaseSync(file);
  const some = (limit: number) => draw(() => fc.nat({ max: limit }));
  /** The key of any row of a relation, or undefined. */
  const anyKey = (name: string): readonly SQLInputValue[] | undefined => {
    const { table, key } = relations.find((each) => each.name === name) as Relation;
    const statement = db.prepare(
      `SELECT ${key.map(quoted).join()} FROM ${quoted(table)} ORDER BY 1, ${key.length}`,
    );
    statement.setReturnArrays(true);
    statement.setReadBigInts(true);
    const rows = statement.all() as unknown as SQLInputValue[][];
    return rows[some(Math.max(0, rows.length - 1))];
  };
  const run = (sql: string, values: readonly SQLInputValue[] = []) => {
    try {
      db.prepare(sql).run(...values);
    } catch (error) {
      assert.match(String(error), /constraint failed/);
    }
  };
  for (const relation of relations) {
    const isUsers = relation.name === 'users';
    for (let left = 8; left > 0; left--) {
      const body = draw(bodies, relation);
      const values = new Map<string, SQLInputValue>();
      for (const { name, type } of relation.columns) {
        if (body[name] === undefined) continue;
        const parsed = body[name] === null ? { value: null } : codecOf(type).parse(body[name]);
        assert.ok('value' in parsed);
        values.set(name, codecOf(type).sqlite.bind(parsed.value));
      }
      for (const { to, columns } of relation.references) {
        for (const [i, part] of (anyKey(to) ?? []).entries()) values.set(columns[i] ?? '', part);
      }
      values.set(isUsers ? 'version' : '_version', some(2 ** 40));
      const names = [...values.keys()].map(quoted);
      run(`INSERT INTO ${quoted(relation.table)} (${names.join()}) VALUES (${names.map(() => '?').join()})`, [
        ...values.values(),
      ]);
    }
  }
  for (const { table, key, references } of relations) {
    for (const { to, columns } of references) {
      const target = anyKey(to);
      if (target === undefined) continue;
      const set = columns.map((column) => `${quoted(column)} = ?`).join();
      const first = `SELECT ${key.map(quoted).join()} FROM ${quoted(table)} ORDER BY 1 LIMIT 1`;
      run(`UPDATE ${quoted(table)} SET ${set} WHERE (${key.map(quoted).join()}) IN (${first})`, target);
    }
    const isNumbered = key.join() === 'id';
    if (isNumbered) run(`DELETE FROM ${quoted(table)} WHERE id > (SELECT max(id) FROM ${quoted(table)}) - 2`);
  }
}

/** All rows and numbers that were given, as they are stored. */
function stored(file: string, relations: readonly Relation[]): unknown {
  using db = new DatabaseSync(file);
  const all = (sql: string) => {
    const statement = db.prepare(sql);
    statement.setReadBigInts(true);
    return statement.all();
  };
  assert.deepEqual(all('PRAGMA foreign_key_check'), []);
  const numbered = `SELECT * FROM sqlite_sequence WHERE seq > 0 ORDER BY name`;
  return {
    rows: relations.map(({ table, key }) =>
      all(`SELECT * FROM ${quoted(table)} ORDER BY ${key.map(quoted).join()}`),
    ),
    numbers: all(numbered).filter(({ name }) => relations.some(({ table }) => table === name)),
  };
}

async function stepsOf(url: string, relations: readonly Relation[]): Promise<readonly string[]> {
  const { steps } = await withSchema(url, 'look', async (session) => planRelations(session, relations));
  return steps.map(({ table, what }) => `${table}: ${what}`);
}

describe('moving the rows of relations', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresDatabases;
  before(async () => {
    server = await sharedPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  test('rows of random relations come back from PostgreSQL as they went there', async () => {
    let moved = 0;
    await fc.assert(
      fc.asyncProperty(declarationsWithUsers, fc.gen(), async ({ relations }, draw) => {
        await using folder = await temporaryFolder();
        const [first = '', second = ''] = ['first.db', 'second.db'].map((name) => join(folder.path, name));
        await makeTables(`sqlite:${first}`, relations);
        fill(first, relations, draw);
        const given = stored(first, relations);
        const [a, b] = [await server.createDatabase(), await server.createDatabase()];
        const stop = { step: 'copy', after: draw(() => fc.nat({ max: 20 })) } as const;
        await move(`sqlite:${first}`, a, stop, false, relations);
        const went = await move(`sqlite:${first}`, a, undefined, false, relations);
        const between = await move(a, b, undefined, false, relations);
        await move(b, `sqlite:${second}`, stop, false, relations);
        const back = await move(b, `sqlite:${second}`, undefined, false, relations);
        assert.deepEqual(stored(second, relations), given);
        assert.deepEqual(stored(first, relations), given, 'the source is as it was');
        assert.deepEqual([between.tables, back.tables], [went.tables, went.tables]);
        for (const url of [a, b, `sqlite:${second}`]) assert.deepEqual(await stepsOf(url, relations), []);
        for (const { table } of relations) moved += went.tables?.[table]?.rows ?? 0;
      }),
      { numRuns: rounds(15), endOnFailure: true },
    );
    assert.ok(moved > 0, 'no row was moved');
  });

  test('values of all types are the same to the last digit, and changes go on from there', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'first.db');
    await makeTables(`sqlite:${file}`, [SPECIMENS]);
    {
      using db = new DatabaseSync(file);
      db.exec(`INSERT INTO specimens (id, code, big, amount, ratio, day, at, made, token, data, raw, _version) VALUES
        (5, 'a', 9223372036854775807, -999999999999999999, 5e-324, '0001-01-01', -62135596800000, 1, '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
         '{"b":1.10,"a":1}', x'00ff', 9007199254740991)`);
    }
    const to = await server.createDatabase();
    await move(`sqlite:${file}`, to, undefined, false, [SPECIMENS]);
    const [row] = await server.sql(
      `SELECT big::text, amount::text, ratio::text, day::text, at AT TIME ZONE 'UTC', made AT TIME ZONE 'UTC', token::text, data::text,
        encode(raw, 'hex'), _version::text FROM specimens`,
      to,
    );
    assert.deepEqual(row?.map(String), [
      '9223372036854775807',
      '-999999999999999.999',
      '5e-324',
      '0001-01-01',
      ...(row ?? []).slice(4, 6).map(String),
      '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
      '{"b":1.10,"a":1}',
      '00ff',
      '9007199254740991',
    ]);
    assert.deepEqual(
      (
        await server.sql(
          'SELECT extract(epoch FROM at)::text, extract(epoch FROM made)::text FROM specimens',
          to,
        )
      )[0],
      ['-62135596800.000000', '0.001000'],
    );
    await using database = await openDatabase(to);
    const { changes } = await database.openRelations([SPECIMENS]);
    await server.sql(`INSERT INTO specimens (code, made, token) VALUES ('b', now(), gen_random_uuid())`, to);
    assert.deepEqual(await server.sql(`SELECT id FROM specimens WHERE code = 'b'`, to), [['6']]);
    const events = await server.sql(
      `SELECT type, "row"::json ->> 'code' FROM relation_events ORDER BY seq`,
      to,
    );
    assert.deepEqual(events, [
      ['start', null],
      ['created', 'b'],
    ]);
    assert.ok(changes !== undefined);
  });

  const LOANS = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
    INSERT INTO loans (book_id, reader, _version) SELECT 1 + i % 3, 'r' || i, i FROM n`;

  for (const source of ['sqlite', 'postgres'] as const) {
    test(`batches of a composite key go on behind the last row, from ${source}`, async () => {
      await using folder = await temporaryFolder();
      const sqlite = `sqlite:${join(folder.path, 'one.db')}`;
      const postgres = await server.createDatabase();
      const [from, to] = source === 'sqlite' ? [sqlite, postgres] : [postgres, sqlite];
      await makeTables(from, LIBRARY);
      const sql = `INSERT INTO authors (name) VALUES ('Ann');
        INSERT INTO books (title, author_id) VALUES ('A', 1), ('B', 1), ('C', 1); ${LOANS}`;
      if (source === 'postgres') for (const each of sql.split(';')) await server.sql(each, from);
      else {
        using db = new DatabaseSync(from.replace('sqlite:', ''));
        db.exec(sql);
      }
      for (const stop of [3_000, 5_500]) {
        const { tables } = await move(from, to, { step: 'copy', after: stop }, false, LIBRARY);
        assert.equal(tables, undefined);
        await assert.rejects(async () => openDatabase(to), /a move into it is unfinished/);
      }
      const { resumed, tables } = await move(from, to, undefined, false, LIBRARY);
      assert.deepEqual([resumed, tables?.loans?.rows], [true, 12_000]);
      const again = await move(from, to, undefined, false, LIBRARY);
      assert.deepEqual([again.alreadyComplete, again.tables], [true, tables]);
      assert.deepEqual(await stepsOf(to, LIBRARY), []);
    });
  }

  test('a changed row of the target is found, and --restart mends it', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'one.db');
    await makeTables(`sqlite:${file}`, LIBRARY);
    {
      using db = new DatabaseSync(file);
      db.exec(`INSERT INTO authors (name) VALUES ('Ann'), ('Bob')`);
    }
    const to = await server.createDatabase();
    await move(`sqlite:${file}`, to, { step: 'compare', after: 1 }, false, LIBRARY);
    await server.sql('UPDATE authors SET _version = _version + 1 WHERE id = 2', to);
    await assert.rejects(
      move(`sqlite:${file}`, to, undefined, false, LIBRARY),
      refused(/authors: 2 rows in both/),
    );
    const { tables } = await move(`sqlite:${file}`, to, undefined, true, LIBRARY);
    assert.equal(tables?.authors?.rows, 2);
  });

  test('a source with other tables than the declaration is refused', async () => {
    await using folder = await temporaryFolder();
    const file = `sqlite:${join(folder.path, 'one.db')}`;
    await makeTables(file, LIBRARY);
    const to = await server.createDatabase();
    await assert.rejects(
      move(file, to, undefined, false, [...LIBRARY, SPECIMENS]),
      refused(/not those of the declaration\. Run "portico migrate"/),
    );
  });

  test('portico move takes the declaration from the configuration, and names what it leaves behind', async () => {
    await using folder = await temporaryFolder();
    const configure = (tables: readonly string[]) => {
      const columns = { name: { type: 'text', max: 9 } };
      const relations = Object.fromEntries(tables.map((name) => [name, { columns }]));
      return writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations }));
    };
    const from = `sqlite:${join(folder.path, 'a.db')}`;
    const portico = async (...args: readonly string[]) => {
      const result = await runCommand(args, { cwd: folder.path, env: { DATABASE_URL: from } });
      assert.equal(result.code, 0, result.stderr);
      return result;
    };
    await configure(['tags', 'kinds']);
    await portico('migrate');
    {
      using db = new DatabaseSync(join(folder.path, 'a.db'));
      db.exec(`INSERT INTO tags (name) VALUES ('t')`);
    }
    await configure(['tags']);
    const to = await server.createDatabase();
    const { stdout, stderr } = await portico('move', '--from', from, '--to', to);
    assert.match(stderr, /does not declare are not moved: kinds\./);
    assert.match(stdout, / {2}tags +1 row, SHA-256 [0-9a-f]{64}\n/);
    assert.deepEqual(await server.sql('SELECT name FROM tags', to), [['t']]);
  });
});
