import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import { readRelations } from '../../src/config/schema/relations.ts';
import type { Relation } from '../../src/relations/relation.ts';
import type { Database } from '../../src/sql/database.ts';
import { migrateDatabase, openDatabase, withSchema } from '../../src/sql/open.ts';
import { dropUndeclared } from '../../src/sql/schema/drop.ts';
import { migrateRelations, planRelations } from '../../src/sql/schema/migrate.ts';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

function declared(data: unknown): readonly Relation[] {
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'relations' }, problems);
  assert.deepEqual(problems, []);
  return relations;
}

const phone = (max: number) => ({ phone: { type: 'text', max, nullable: true } });
const badge = { badge: { type: 'integer', min: 0, default: 7 } };
const devices = { columns: { owner: { type: 'reference', to: 'users' } } };
const INDEXES = { search: 'text', uniqueEmail: true } as const;

interface Place extends AsyncDisposable {
  readonly url: string;
  readonly folder: string;
  rows(sql: string): Promise<readonly (readonly unknown[])[]>;
}

const places: Readonly<Record<string, () => Promise<Place>>> = {
  async sqlite() {
    const folder = await temporaryFolder();
    const file = join(folder.path, 'test.db');
    return {
      url: `sqlite:${file}`,
      folder: folder.path,
      async rows(sql) {
        using db = new DatabaseSync(file);
        const statement = db.prepare(sql);
        statement.setReturnArrays(true);
        return statement.all() as unknown as unknown[][];
      },
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    };
  },
  ...(withoutPostgres === undefined
    ? {
        async postgres() {
          const folder = await temporaryFolder();
          const url = await postgresDatabase();
          return {
            url,
            folder: folder.path,
            async rows(sql: string) {
              const client = new pg.Client({ connectionString: url });
              await client.connect();
              const { rows } = await client.query({ text: sql, rowMode: 'array' });
              await client.end();
              return rows as unknown[][];
            },
            [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
          };
        },
      }
    : {}),
};

async function withUsers(
  url: string,
  relations: readonly Relation[],
  work: (database: Database) => Promise<void>,
) {
  await using database = await openDatabase(url, { forService: true, userIndexes: INDEXES });
  if (relations.length > 0) await database.openRelations(relations);
  await work(database);
}

const migrated = (url: string, relations: readonly Relation[], rewrite = false) =>
  withSchema(url, 'migrate', (session) => migrateRelations(session, relations, { rewrite }));
const plan = (url: string, relations: readonly Relation[]) =>
  withSchema(url, 'look', async (session) => planRelations(session, relations));

for (const [engine, open] of Object.entries(places)) {
  describe(`the table of users on ${engine}`, () => {
    test('a start adds columns to it, and all else about it stays', async () => {
      await using place = await open();
      await withUsers(place.url, [], async ({ users }) => {
        for (const name of ['Ann', 'Bob']) await users.create({ name, email: `${name}@x.y` });
        await users.remove(2);
      });
      const before = await othersOf(place, engine);
      const relations = declared({ users: { columns: { ...phone(9), ...badge } }, devices });
      await withUsers(place.url, relations, async ({ users }) => {
        assert.equal(await users.create({ name: 'Cid', email: 'Cid@x.y' }), 3, 'no id is used again');
        await assert.rejects(users.create({ name: 'Cid', email: 'CID@x.y' }), { code: 'EMAIL_TAKEN' });
        const found = await users.rows?.read([1]);
        assert.deepEqual(found?.values, [1, 'Ann', 'Ann@x.y', null, 7]);
      });
      assert.deepEqual(await plan(place.url, relations), { steps: [], undeclared: [] });
      assert.deepEqual(await othersOf(place, engine), before);
      await withUsers(place.url, declared({ devices }), async () => {});
      assert.deepEqual((await plan(place.url, declared({ devices }))).undeclared.toSorted(), [
        'users.badge',
        'users.phone',
      ]);
    });

    test('a wider column and a dropped one keep users, their events and their indexes', async () => {
      await using place = await open();
      const both = declared({ users: { columns: { ...phone(3), ...badge } } });
      await withUsers(place.url, both, async ({ users }) => {
        for (const name of ['Ann', 'Bob', 'Cid']) await users.create({ name, email: `${name}@x.y` });
        await users.rows?.change([1], new Map([[3, '123']]), undefined);
        await users.remove(3);
      });
      const before = await othersOf(place, engine);
      const wide = declared({ users: { columns: { ...phone(30), ...badge } } });
      await migrated(place.url, wide, true);
      assert.deepEqual(await plan(place.url, wide), { steps: [], undeclared: [] });
      const narrow = declared({ users: { columns: phone(30) } });
      const [path = ''] = await withSchema(place.url, 'migrate', (session) =>
        dropUndeclared(session, narrow, ['users.badge'], place.folder),
      );
      assert.equal(await readFile(path, 'utf8'), '{"id":1,"badge":7}\n{"id":2,"badge":7}\n');
      assert.deepEqual(await othersOf(place, engine), before);
      await withUsers(place.url, narrow, async ({ users }) => {
        assert.deepEqual((await users.rows?.read([1]))?.values, [1, 'Ann', 'Ann@x.y', '123']);
        assert.equal(await users.create({ name: 'Dan', email: 'Dan@x.y' }), 4, 'no id is used again');
        await users.update(2, { name: 'Bobby', email: 'Bob@x.y' });
        const kinds = await place.rows('SELECT type FROM user_events ORDER BY seq');
        assert.equal(kinds.flat().join(), 'start,created,created,created,updated,deleted,created,updated');
        const found = await users.lists.page({
          filters: [{ field: 'name', match: 'contains', text: 'obb' }],
          order: [{ field: 'id', descending: false }],
          fields: ['id'],
          limit: 5,
          next: undefined,
          backwards: false,
        });
        assert.equal(String(found.json), '{"id":2}', 'the index of substrings follows');
      });
    });

    test('followers of users see what the rows of relations do to them, cascades included', async () => {
      await using place = await open();
      const team = { type: 'reference', to: 'teams', nullable: true, onDelete: 'cascade' };
      const relations = declared({ teams: { columns: {} }, users: { columns: { team } } });
      await migrateDatabase(place.url);
      await migrated(place.url, relations);
      await using database = await openDatabase(place.url, { forService: true });
      const { stores } = await database.openRelations(relations);
      const { users, userFeed } = database;
      const next = async (type: 'created' | 'deleted', write: () => Promise<unknown>) => {
        const events = await userFeed.subscribe(type);
        const event = events.next();
        await write();
        const { value } = await event;
        await events.return?.();
        return (value as { readonly name: string } | undefined)?.name;
      };
      await stores.get('teams')?.create([[null]]);
      assert.equal(await next('created', async () => users.rows?.create([[null, 'Ann', 'a@b', 1]])), 'Ann');
      assert.equal(await next('deleted', async () => stores.get('teams')?.remove([1], undefined)), 'Ann');
      assert.equal(await users.read(1), undefined);
    });

    test('a new database has no table of users yet, which a check leaves out', async () => {
      await using place = await open();
      const relations = declared({ users: { columns: phone(3) }, devices });
      const { steps } = await plan(place.url, relations);
      const tables = new Set(steps.map(({ table }) => table));
      assert.deepEqual([tables.has('devices'), tables.has('users')], [true, false]);
      await migrateDatabase(place.url);
      const after = await plan(place.url, relations);
      assert.ok(after.steps.some(({ table, what }) => table === 'users' && what === 'add column phone'));
    });
  });
}

/** What the table of users has besides its columns: triggers, indexes and, on PostgreSQL, constraints. */
async function othersOf({ rows }: Place, engine: string): Promise<unknown> {
  if (engine === 'sqlite')
    return rows(
      `SELECT type, name, replace(sql, '"', '') FROM sqlite_schema WHERE tbl_name = 'users' AND type <> 'table' AND name NOT LIKE 'users\\_\\_%' ESCAPE '\\' ORDER BY name`,
    );
  return rows(
    `SELECT tgname::text, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'users'::regclass AND NOT tgisinternal
     UNION ALL SELECT indexname::text, indexdef FROM pg_indexes WHERE tablename = 'users' AND indexname NOT LIKE 'users\\_\\_%' ORDER BY 1`,
  );
}

test('the statements of users are the same beside relations that refer to them', async () => {
  const run = async (relations: readonly Relation[]) => {
    const texts = new Set<string>();
    const { prepare } = DatabaseSync.prototype;
    DatabaseSync.prototype.prepare = function (this: DatabaseSync, text, ...rest) {
      texts.add(text);
      return prepare.call(this, text, ...rest);
    };
    try {
      await using database = openDatabase('sqlite::memory:', { userIndexes: INDEXES });
      if (relations.length > 0) await database.openRelations(relations);
      texts.clear();
      const { users } = database;
      await users.create({ name: 'Ann', email: 'Ann@x.y' });
      await users.createOnce({ name: 'Bob', email: 'Bob@x.y' }, { key: 'k', fingerprint: 'f', keptFor: 9 });
      await users.importUsers([{ name: 'Cid', email: 'Cid@x.y' }]);
      await users.update(1, { name: 'Anna', email: 'Ann@x.y' });
      await users.read(1);
      await users.page('json', 0, 9);
      await users.state();
      await users.lastId();
      await users.remove(1);
    } finally {
      DatabaseSync.prototype.prepare = prepare;
    }
    // A removal of users may cascade to rows of relations, so its time is bounded then.
    return [...texts].filter((text) => !text.includes('TEMP TRIGGER'));
  };
  const alone = await run([]);
  assert.ok(alone.length > 3);
  assert.deepEqual(await run(declared({ devices })), alone);
  assert.deepEqual(await run(declared({ users: { columns: phone(9) }, devices })), alone);
});
