import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type BareDatabase, bareEngines } from '../../../test/support/relations/engines.ts';
import { column, library, relation, serial, text } from '../../../test/support/relations/hand-made.ts';
import { schemaStatements } from './ddl.ts';
import { objectName } from './tables.ts';

const CONSTRAINT = /constraint (?:failed: )?"?([^"]*)/;

/** The constraint that refuses a statement; SQLite names the columns of an index, and no reference. */
async function refusal(db: BareDatabase, sql: string): Promise<string> {
  try {
    await db.run(sql);
    return 'accepted';
  } catch (error) {
    const message = String((error as Error).message);
    return CONSTRAINT.exec(message)?.[1] ?? message;
  }
}

const author = "INSERT INTO authors (name) VALUES ('Austen')";
/** A book whose columns are valid except for one. */
function book(engine: string, name: string, value: string): string {
  const values: Record<string, string> = {
    title: "'Emma'",
    pages: '1',
    price: engine === 'sqlite' ? '100' : '1.00',
    author_id: '1',
    [name]: value,
  };
  return `INSERT INTO books (${Object.keys(values).join(', ')}) VALUES (${Object.values(values).join(', ')})`;
}

for (const [engine, open] of Object.entries(bareEngines)) {
  describe(engine, () => {
    test('tables that refer to each other are created and refuse what the declaration excludes', async () => {
      await using db = await open();
      for (const statement of schemaStatements(db.engine, library)) await db.run(statement);
      await db.run(author);
      const isSqlite = engine === 'sqlite';
      for (const [name, value] of [
        ['title', "'123456'"],
        ['pages', '0'],
        ['pages', '9001'],
        ['price', '-1'],
        ['price', isSqlite ? '1000000' : "'NaN'"],
        ['sort', "'novels'"],
        ['published', isSqlite ? "'2023-02-29'" : "'10000-01-01'"],
        ['published', isSqlite ? "'2023-2-1'" : "'infinity'"],
        ['added', isSqlite ? '253402300800000' : "'10000-01-01T00:00:00Z'"],
        ['weight', isSqlite ? '9e999' : "'NaN'"],
        ['tags', `'["0123456789012345678"]'`],
        ['cover', isSqlite ? "X'00010203'" : "'\\x00010203'"],
        ...(isSqlite
          ? [
              ['is_read', '2'],
              ['code', "'x'"],
              ['tags', "'['"],
            ]
          : []),
      ] as const) {
        assert.match(
          await refusal(db, book(engine, String(name), String(value))),
          new RegExp(`^books__check__${name}__`),
          `${name} ${value}`,
        );
      }
      const accepted: readonly (readonly [string, string])[] = [
        ['title', "'🦊🦊🦊🦊🦊'"],
        ['sort', "'what''s else?'"],
        ['published', "'2024-02-29'"],
        ['published', "'0001-01-01'"],
        ['size', '-9223372036854775807'],
        ['code', "'0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'"],
        ['weight', '-1.5e300'],
        ['cover', 'NULL'],
      ];
      for (const [n, [name, value]] of accepted.entries()) {
        await db.run(book(engine, name, value).replace("'Emma'", `'E${n}'`));
      }
      await db.run(book(engine, 'title', "'Emma'"));
      const taken = await refusal(db, book(engine, 'title', "'Emma'"));
      assert.equal(taken, isSqlite ? 'books.author_id, books.title' : 'books__unique__author_id_title');
      assert.notEqual(await refusal(db, author.replace('Austen', 'AUSTEN')), 'accepted', 'names are folded');
      const missing = await refusal(db, book(engine, 'author_id', '99'));
      assert.equal(missing, isSqlite ? 'failed' : 'books__reference__author');
      const [row] = await db.rows('SELECT sort, _version FROM books LIMIT 1');
      assert.deepEqual(row, ['novel', 0]);
    });

    test('each reference and each fold has an index', async () => {
      await using db = await open();
      for (const statement of schemaStatements(db.engine, library)) await db.run(statement);
      const sql =
        engine === 'sqlite'
          ? "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name"
          : 'SELECT relname::text FROM pg_class JOIN pg_index ON indexrelid = oid WHERE relnamespace = current_schema()::regnamespace AND NOT indisprimary ORDER BY relname::text COLLATE "C"';
      assert.deepEqual((await db.rows(sql)).flat(), [
        'authors__index__best_id',
        'authors__index__teacher_id',
        'authors__unique__name',
        'books__index__author_id',
        'books__index__published_id',
        'books__unique__author_id_title',
      ]);
    });
  });
}

test('a name beyond 63 bytes is cut and stays different from others', () => {
  const long = relation('a'.repeat(40), [
    column('id', serial),
    column('b'.repeat(60), text(3)),
    column(`${'b'.repeat(59)}c`, text(3)),
  ]);
  const names = long.columns.map(({ name }) => objectName(long.table, 'index', [name]));
  assert.equal(new Set(names).size, 3);
  for (const name of names) assert.ok(Buffer.byteLength(name) <= 63, name);
  const created = schemaStatements('postgres', [long]).join();
  const checks = [...created.matchAll(/CONSTRAINT "([^"]+)" CHECK/g)].map(([, name = '']) => name);
  assert.equal(new Set(checks).size, 2);
  for (const name of checks) assert.ok(Buffer.byteLength(name) <= 63, name);
  assert.ok(Buffer.byteLength(objectName('ä'.repeat(50), 'key', [])) <= 63);
});
