import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type BareDatabase, bareEngines } from '../../../test/support/relations/engines.ts';
import { column, reference, relation, serial, text } from '../../../test/support/relations/hand-made.ts';
import { jsonOf } from '../../../test/support/relations/random-columns.ts';
import { randomRelations } from '../../../test/support/relations/random-relations.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { codecOf } from '../../relations/codecs.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import { dropUndeclared } from './drop.ts';
import { migrateRelations, planRelations, prepareRelations, SchemaError } from './migrate.ts';
import { postgresSession } from './postgres-session.ts';
import { sqliteSession } from './sqlite-session.ts';
import type { SchemaSession } from './steps.ts';
import { type Engine, identifier, textLiteral } from './tables.ts';

function sessionOn(on: BareDatabase): SchemaSession {
  return on.engine === 'sqlite' ? sqliteSession(on.db) : postgresSession(on.db);
}

async function clear(on: BareDatabase): Promise<void> {
  const isSqlite = on.engine === 'sqlite';
  const sql = isSqlite
    ? "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    : "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'";
  if (isSqlite) await on.run('PRAGMA foreign_keys = OFF');
  for (const [name] of await on.rows(sql)) await on.run(`DROP TABLE "${name}"${isSqlite ? '' : ' CASCADE'}`);
  if (isSqlite) await on.run('PRAGMA foreign_keys = ON');
}

const all = { rewrite: true };
const towns = [
  relation(
    'towns',
    [column('id', serial), column('name', text(20)), column('area', { kind: 'integer' }, { nullable: true })],
    { indexes: [['name']] },
  ),
];
const people = [
  relation('people', [column('id', serial), column('town_id', { kind: 'integer' })], {
    references: [reference('town', 'towns', 'cascade')],
  }),
];
const ROWS = 4;

function literal(engine: Engine, { type }: Column, json: unknown): string {
  if (json === null) return 'NULL';
  const parsed = codecOf(type).parse(json);
  assert.ok('value' in parsed);
  const bound = codecOf(type)[engine].bind(parsed.value);
  if (bound instanceof Uint8Array) {
    const hex = Buffer.from(bound).toString('hex');
    return engine === 'sqlite' ? `x'${hex}'` : `'\\x${hex}'`;
  }
  return typeof bound === 'string' ? textLiteral(bound) : String(bound);
}

/** Statements that add rows with the keys 1 to ROWS, of which each refers to those with its own number. */
function insertions(engine: Engine, { table, columns, key, references }: Relation, seed: number) {
  return Array.from({ length: ROWS }, (_, nth) => {
    const values = columns.map((each, at) => {
      const { name, type, nullable } = each;
      const isNamed = key.includes(name) || references.some((of) => of.columns.includes(name));
      if (isNamed) return type.kind === 'text' ? `'k${nth + 1}'` : String(nth + 1);
      if (nullable && (seed + nth + at) % 4 === 0) return 'NULL';
      const [json] = fc.sample(jsonOf(type), { numRuns: 1, seed: seed + nth * 100 + at });
      return literal(engine, each, json ?? null);
    });
    const names = columns.map(({ name }) => identifier(name)).join(', ');
    const overriding = engine === 'postgres' ? ' OVERRIDING SYSTEM VALUE' : '';
    return `INSERT INTO ${identifier(table)} (${names})${overriding} VALUES (${values.join(', ')})`;
  });
}

/** The values of a column by key, as texts. */
async function valuesOf(
  on: BareDatabase,
  { table, key }: Relation,
  name: string,
): Promise<readonly string[]> {
  const columns = [...key, name].map((each) =>
    on.engine === 'sqlite' ? `quote(${identifier(each)})` : `${identifier(each)}::text`,
  );
  const rows = await on.rows(`SELECT ${columns.join(', ')} FROM ${identifier(table)}`);
  return rows.map((row) => JSON.stringify(row)).toSorted();
}

const isEqual = (a: unknown, b: unknown) =>
  JSON.stringify(a, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)) ===
  JSON.stringify(b, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));

/** The columns whose values a migration must keep: all but those that change their type or get a value. */
function keptColumns(before: Relation, after: Relation): readonly string[] {
  const typesOf = ({ key, columns }: Relation) => [
    key,
    columns.filter(({ name }) => key.includes(name)).map(({ type }) => type.kind),
  ];
  if (!isEqual(typesOf(before), typesOf(after))) return [];
  return before.columns
    .filter(({ name, type, nullable }) => {
      const found = after.columns.find((each) => each.name === name);
      if (found === undefined) return true;
      const isFilled = nullable && !found.nullable;
      const scale = (of: object) => ('scale' in of ? of.scale : undefined);
      return found.type.kind === type.kind && scale(found.type) === scale(type) && !isFilled;
    })
    .map(({ name }) => name);
}

for (const [engine, open] of Object.entries(bareEngines)) {
  describe(engine, () => {
    test('a migration from any declaration to another keeps all rows, or is refused by name', async () => {
      await using db = await open();
      let made = 0;
      let kept = 0;
      const numRuns = engine === 'sqlite' ? 200 : 30;
      await fc.assert(
        fc.asyncProperty(randomRelations, randomRelations, fc.nat(1e6), async (before, after, seed) => {
          await clear(db);
          const session = sessionOn(db);
          await prepareRelations(session, before, 'additive');
          for (const each of before.flatMap((relation) => insertions(db.engine, relation, seed))) {
            // Some rows refer to rows that do not exist yet, or have a value that must be unique.
            await db.run(each).catch(() => {});
          }
          const expected: (readonly [Relation, string, readonly string[]])[] = [];
          for (const relation of before) {
            const next = after.find(({ table }) => table === relation.table) ?? relation;
            for (const name of keptColumns(relation, next))
              expected.push([relation, name, await valuesOf(db, relation, name)]);
          }
          try {
            await migrateRelations(session, after, all);
            made++;
            const { steps } = await planRelations(session, after);
            assert.deepEqual(steps, []);
          } catch (error) {
            if (!(error instanceof SchemaError)) throw error;
          }
          for (const [relation, name, values] of expected) {
            assert.deepEqual(await valuesOf(db, relation, name), values, `${relation.table}.${name}`);
            kept += values.length;
          }
        }),
        { numRuns },
      );
      // About three of ten are made; by chance never so few.
      assert.ok(made > numRuns / 15 && kept > numRuns, `${made} of ${numRuns}, ${kept} values`);
    });

    test('a number of 64 bits that is too large for a double is refused by its row', async () => {
      await using db = await open();
      const session = sessionOn(db);
      const numbers = (kind: 'bigint' | 'number') =>
        relation('numbers', [column('id', serial), column('big', { kind }, { nullable: true })]);
      await migrateRelations(session, [numbers('bigint')], all);
      await db.run('INSERT INTO numbers (big) VALUES (9007199254740992), (-9223372036854775808), (NULL)');
      await assert.rejects(async () => migrateRelations(session, [numbers('number')], all), {
        message: /because of 1 row whose big would change as a number, by id: 2\./,
      });
      await db.run('DELETE FROM numbers WHERE id = 2');
      await migrateRelations(session, [numbers('number')], all);
      assert.deepEqual(await db.rows('SELECT big FROM numbers WHERE id = 1'), [[9007199254740992]]);
    });

    test('what was changed by hand is seen and mended, and what was added stays', async () => {
      await using db = await open();
      const session = sessionOn(db);
      await prepareRelations(session, towns, 'additive');
      await db.run("INSERT INTO towns (name, area) VALUES ('Ulm', 7)");
      await db.run('DROP INDEX towns__index__name; ALTER TABLE towns ADD COLUMN mayor text');
      const plan = await planRelations(session, towns);
      assert.deepEqual(
        [plan.steps.map(({ what }) => what), plan.undeclared],
        [['create index towns__index__name'], ['towns.mayor']],
      );
      await migrateRelations(session, towns, all);
      assert.deepEqual((await planRelations(session, towns)).steps, []);
      assert.deepEqual(await db.rows('SELECT name, area, mayor FROM towns'), [['Ulm', 7, null]]);
      await db.run('CREATE TABLE places (area real)');
      const places = relation('places', [column('area', { kind: 'integer' })]);
      const { steps } = await planRelations(session, [places]);
      assert.ok(
        steps.some(({ obstacle }) =>
          obstacle?.startsWith('values of area cannot become integer from number;'),
        ),
        JSON.stringify(steps),
      );
      await assert.rejects(async () => prepareRelations(session, [places], 'additive'), /places: .*area/);
    });

    test('a declaration that is removed and added again finds its rows, and so does an older one', async () => {
      await using db = await open();
      const session = sessionOn(db);
      await prepareRelations(session, [...towns, ...people], 'additive');
      await db.run("INSERT INTO towns (name) VALUES ('Ulm')");
      await db.run('INSERT INTO people (town_id) VALUES (1)');
      assert.deepEqual(await prepareRelations(session, towns, 'additive'), ['people']);
      assert.deepEqual(await prepareRelations(session, [...towns, ...people], 'additive'), []);
      const [town] = towns;
      assert.ok(town !== undefined);
      const older = { ...town, columns: town.columns.filter(({ name }) => name !== 'area'), indexes: [] };
      const undeclared = await prepareRelations(session, [older], 'additive');
      assert.deepEqual(undeclared.toSorted(), ['people', 'towns.area']);
      assert.deepEqual(await prepareRelations(session, [...towns, ...people], 'additive'), []);
      assert.deepEqual(await db.rows('SELECT id, town_id FROM people'), [[1, 1]]);
    });

    test('a reference that others have made stays, also when its table is made anew', async () => {
      await using db = await open();
      const session = sessionOn(db);
      await prepareRelations(session, towns, 'additive');
      await db.run(
        `CREATE TABLE dogs (id ${engine === 'sqlite' ? 'INTEGER PRIMARY KEY AUTOINCREMENT' : 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY'},
         town_id ${engine === 'sqlite' ? 'INTEGER' : 'bigint'} NOT NULL REFERENCES towns (id) ON DELETE CASCADE)`,
      );
      await db.run("INSERT INTO towns (name) VALUES ('Ulm')");
      await db.run('INSERT INTO dogs (town_id) VALUES (1)');
      const dogs = relation('dogs', [column('id', serial), column('town_id', { kind: 'integer' })]);
      const declared = [...towns, dogs];
      await migrateRelations(session, declared, all);
      assert.deepEqual((await planRelations(session, declared)).steps, []);
      const named = [
        ...towns,
        relation('dogs', [...dogs.columns, column('name', text(9), { nullable: true })]),
      ];
      await migrateRelations(session, named, all);
      await assert.rejects(db.run('INSERT INTO dogs (town_id) VALUES (2)'), /foreign key/i);
      await db.run('DELETE FROM towns');
      assert.deepEqual(await db.rows('SELECT id FROM dogs'), []);
    });

    test('what others refer to is dropped after these', async () => {
      await using db = await open();
      await using folder = await temporaryFolder();
      const session = sessionOn(db);
      await prepareRelations(session, [...towns, ...people], 'additive');
      await assert.rejects(dropUndeclared(session, people, ['towns'], folder.path), {
        code: 'SCHEMA_STEP',
        message:
          'towns cannot be dropped, because people.town_id refers to it. Remove that column from the declaration and drop it first.',
      });
      const dropped = await dropUndeclared(session, [], ['people', 'towns'], folder.path);
      assert.deepEqual(
        dropped.map((path) => basename(path)),
        ['people.ndjson', 'towns.ndjson'],
      );
      assert.deepEqual(await planRelations(session, []), { steps: [], undeclared: [] });
    });
  });
}

test('the number of statements of a plan on SQLite does not depend on the tables', async () => {
  const open = bareEngines.sqlite;
  assert.ok(open !== undefined);
  await using db = await open();
  assert.ok(db.engine === 'sqlite');
  const session = sqliteSession(db.db);
  let count = 0;
  const { prepare } = db.db;
  db.db.prepare = (sql) => {
    count++;
    return prepare.call(db.db, sql);
  };
  const many = Array.from({ length: 30 }, (_, nth) =>
    relation(`r${nth}`, [column('id', serial)], { indexes: [['id']] }),
  );
  const counts = [towns, [...towns, ...people], many].map((relations) => {
    void prepareRelations(session, relations, 'additive');
    count = 0;
    void prepareRelations(session, relations, 'additive');
    return count;
  });
  assert.deepEqual([...new Set(counts)].length, 1, counts.join());
  assert.ok((counts[0] ?? 0) < 10);
});
