import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bareEngines } from '../../../test/support/relations/engines.ts';
import { declared, shopTables } from '../../../test/support/relations/existing.ts';
import { declarations } from '../../../test/support/relations/random-declarations.ts';
import type { RelationData } from '../../config/schema/declaration.ts';
import type { Relation } from '../../relations/relation.ts';
import { schemaStatements } from '../schema/ddl.ts';
import { planRelations } from '../schema/migrate.ts';
import { postgresSession } from '../schema/postgres-session.ts';
import { sqliteSession } from '../schema/sqlite-session.ts';
import type { SchemaSession } from '../schema/steps.ts';
import { declareTables, readFoundTables } from './declare.ts';
import { resolveRelations } from './resolve.ts';

const ROUNDS = 40;

for (const [engine, open] of Object.entries(bareEngines)) {
  const sessionOf = (database: Awaited<ReturnType<typeof open>>): SchemaSession =>
    database.engine === 'sqlite' ? sqliteSession(database.db) : postgresSession(database.db);

  test(`tables of another program become a declaration, on ${engine}`, async () => {
    await using database = await open();
    await database.run(shopTables(database.engine));
    const session = sessionOf(database);
    const found = await readFoundTables(session);
    const { relations, notes } = declareTables(database.engine, found);
    assert.deepEqual(Object.keys(relations), ['Album', 'Artist', 'Track_List', 'staff']);
    assert.deepEqual(notes, ['Log: has no primary key; add one, or serve a view with a declared key']);
    assert.deepEqual(relations.Album, {
      existing: true,
      one: 'AlbumRow',
      key: ['AlbumId'],
      columns: {
        AlbumId: { type: 'serial', open: true },
        Title: { type: 'text', max: 160 },
        Artist: { type: 'reference', to: 'Artist', columns: ['ArtistId'], onDelete: 'cascade' },
        Price: { type: 'decimal', precision: 10, scale: 2, min: '0.00', default: '9.90' },
        Released: { type: 'timestamp', nullable: true },
        Mood: { type: 'enum', values: ['sad', 'ok'], nullable: true },
        Label: { type: 'text', max: 40, generated: 'by default' },
        Initial: { type: 'text', max: 1, nullable: true, generated: 'always' },
      },
      unique: [['ArtistId', 'Title']],
      indexes: [['ArtistId'], ['Price']],
    });
    assert.deepEqual(relations.Track_List, {
      existing: true,
      one: 'Track_ListRow',
      table: 'Track List',
      key: ['AlbumId', 'Nr'],
      columns: {
        Album: { type: 'reference', to: 'Album', columns: ['AlbumId'] },
        Nr: { type: 'integer', min: 1 },
        Name: { type: 'text', max: 80 },
      },
    });
    const { columns } = relations.staff as RelationData;
    assert.equal(columns.deputy?.type, 'reference');
    assert.deepEqual(Object.keys(columns), [
      'id',
      'name',
      engine === 'sqlite' ? 'boss_staff' : 'staff_boss_fkey',
      'deputy',
    ]);
    const read = declared(relations);
    // Two references to one relation have an inverse each.
    assert.equal(
      new Set(read.find(({ name }) => name === 'staff')?.inverses.map(({ name }) => name)).size,
      2,
    );
  });

  test(`only the wanted tables are declared, on ${engine}`, async () => {
    await using database = await open();
    await database.run(shopTables(database.engine));
    const found = await readFoundTables(sessionOf(database));
    const only = declareTables(database.engine, found, { only: ['Album', 'Nothing'] });
    assert.deepEqual(Object.keys(only.relations), ['Album']);
    assert.deepEqual(only.relations.Album?.columns.ArtistId, { type: 'integer' });
    assert.deepEqual(only.notes, [
      'Nothing: there is no such table; correct its name',
      'Album.ArtistId: refers to Artist, which is not served; it is a plain column',
    ]);
    const rest = declareTables(database.engine, found, { except: ['Album', 'Track List', 'Log'] });
    assert.deepEqual(Object.keys(rest.relations), ['Artist', 'staff']);
  });

  test(`the least bound of a decimal may be its greatest number, on ${engine}`, async () => {
    await using database = await open();
    const columns = {
      n: { type: 'decimal', precision: 1, scale: 1, min: '0.9' },
      m: { type: 'decimal', precision: 3, scale: 1, max: '-99.9' },
    };
    const relations = declared({ rows: { columns, changes: false } });
    for (const sql of schemaStatements(database.engine, relations)) await database.run(sql);
    const found = declareTables(database.engine, await readFoundTables(sessionOf(database)));
    assert.deepEqual(found.relations.rows?.columns, columns);
  });

  test(`a random declaration is found again in its tables, on ${engine}`, async () => {
    await fc.assert(
      fc.asyncProperty(declarations, async ({ relations }) => {
        await using database = await open();
        const plain = relations.map(withoutComputed);
        for (const sql of schemaStatements(database.engine, plain)) await database.run(sql);
        const session = sessionOf(database);
        const found = declareTables(database.engine, await readFoundTables(session));
        const again = declared(found.relations);
        assert.deepEqual(shapesOf(again), shapesOf(plain));
        // The tables say the same of every bound, default, unique and index.
        const { steps, undeclared } = await planRelations(session, again.map(unrecorded));
        assert.deepEqual([steps.map(({ table, what }) => `${table}: ${what}`), undeclared], [[], []]);
      }),
      { numRuns: ROUNDS },
    );
  });
}

for (const [engine, open] of Object.entries(bareEngines)) {
  test(`the declaration of random tables of another program is theirs, on ${engine}`, async () => {
    await fc.assert(
      fc.asyncProperty(declarations, async ({ relations }) => {
        await using database = await open();
        for (const sql of schemaStatements(database.engine, relations)) await database.run(sql);
        // Without it the tables are not those of Portico.
        for (const { table } of relations)
          await database.run(`ALTER TABLE "${table}" DROP COLUMN "_version"`);
        const session =
          database.engine === 'sqlite' ? sqliteSession(database.db) : postgresSession(database.db);
        const found = await readFoundTables(session);
        const again = declared(declareTables(database.engine, found).relations);
        assert.equal(again.length, relations.length);
        const problems: string[] = [];
        const resolved = resolveRelations(database.engine, again, new Map([[undefined, found]]), problems);
        assert.deepEqual(problems, []);
        const columnsOf = (all: readonly Relation[]) =>
          all.flatMap(({ name, columns }) => columns.map((column) => `${name}.${column.name}`)).sort();
        assert.deepEqual(columnsOf(resolved), columnsOf(relations));
      }),
      { numRuns: ROUNDS },
    );
  });
}

/** No expression can be read from a table of PostgreSQL. */
function withoutComputed(relation: Relation): Relation {
  const columns = relation.columns.filter(({ computed }) => computed === undefined);
  const isThere = (name: string) => columns.some((column) => column.name === name);
  return unrecorded({
    ...relation,
    columns,
    indexes: relation.indexes.filter((list) => list.every(isThere)),
  });
}

/** The tables of this test have no triggers. */
const unrecorded = (relation: Relation): Relation => ({ ...relation, changes: false });

/** What a declaration says of names, types, keys and references. */
function shapesOf(relations: readonly Relation[]) {
  const byName = relations.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return byName.map(({ name, key, columns, references }) => ({
    name,
    key,
    columns: columns
      .map((column) => [column.name, column.type.kind, column.nullable] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    references: references
      .map(({ name, to, columns, onDelete }) => ({ name, to, columns, onDelete }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  }));
}
