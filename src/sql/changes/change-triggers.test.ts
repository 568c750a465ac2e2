import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engines } from '../../../test/support/databases.ts';
import { type BareDatabase, bareEngines } from '../../../test/support/relations/engines.ts';
import { column, relation, serial, text } from '../../../test/support/relations/hand-made.ts';
import type { ChangeType } from '../../relations/events.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import { relationEvent } from '../../relations/rows/changes.ts';
import { checkExitCode, describePlan, migrateRelations, planRelations } from '../schema/migrate.ts';
import { postgresSession } from '../schema/postgres-session.ts';
import { sqliteSession } from '../schema/sqlite-session.ts';
import type { SchemaSession } from '../schema/steps.ts';

function sessionOn(on: BareDatabase): SchemaSession {
  return on.engine === 'sqlite' ? sqliteSession(on.db) : postgresSession(on.db);
}

const id = column('id', serial);
const name = column('name', text(20), { nullable: true });
const bytes = column('raw', { kind: 'bytes', max: 100 }, { nullable: true });

const towns = (columns: readonly Column[], more: Partial<Relation> = {}): readonly Relation[] => [
  relation('towns', [id, ...columns], { changes: true, ...more }),
];

/** Makes a declaration the one of the database; returns what the steps were. */
async function migrate(session: SchemaSession, relations: readonly Relation[]): Promise<readonly string[]> {
  const steps = await migrateRelations(session, relations, { rewrite: true });
  assert.deepEqual((await planRelations(session, relations)).steps, [], 'nothing is left');
  // PostgreSQL adds and renames checks in further steps.
  return steps
    .map(({ table, what }) => `${table}: ${what}`)
    .filter((step) => !/: (?:check|rename constraint) /.test(step));
}

/** The rows of the events, without the first one. */
async function told(on: BareDatabase): Promise<readonly string[]> {
  const key = on.engine === 'sqlite' ? 'position' : 'seq';
  const rows = await on.rows(`SELECT type, "row" FROM relation_events WHERE relation <> '' ORDER BY ${key}`);
  return rows.map(([type, row]) => `${type} ${row}`);
}

for (const [engine, open] of Object.entries(bareEngines)) {
  describe(`triggers that record changes on ${engine}`, () => {
    test('are additive steps, follow the columns, and go with "changes": false', async () => {
      await using db = await open();
      const session = sessionOn(db);
      const plan = await planRelations(session, towns([name]));
      assert.equal(checkExitCode(plan), 3);
      assert.match(await describePlan(session, plan), /towns: record changes \(additive.*CREATE TRIGGER/s);
      assert.deepEqual(await migrate(session, towns([name])), [
        'relation_events: create the log of changes',
        'towns: create table',
        'towns: record changes',
      ]);
      await db.run(`INSERT INTO towns (name) VALUES ('Ulm')`);
      const size = column('size', { kind: 'integer' }, { nullable: true });
      assert.deepEqual(await migrate(session, towns([name, size])), [
        'towns: add column size',
        'towns: record changes anew',
      ]);
      await db.run(`UPDATE towns SET size = 3`);
      assert.deepEqual(await migrate(session, towns([{ ...name, name: 'title', was: 'name' }, size])), [
        'towns: rename column name to title',
        'towns: record changes anew',
      ]);
      await db.run(`UPDATE towns SET title = 'Bonn'`);
      assert.deepEqual(
        await migrate(session, towns([{ ...name, name: 'title' }, size], { changes: false })),
        ['towns: stop recording changes'],
      );
      await db.run(`DELETE FROM towns`);
      assert.deepEqual(await told(db), [
        'created {"id":1,"name":"Ulm"}',
        'updated {"id":1,"name":"Ulm","size":3}',
        'updated {"id":1,"title":"Bonn","size":3}',
      ]);
    });

    test('a rebuild or a change of a type keeps them, and one that is missing is made again', async () => {
      await using db = await open();
      const session = sessionOn(db);
      await migrate(session, towns([name, bytes]));
      await db.run(`INSERT INTO towns (name) VALUES ('Ulm')`);
      await migrate(session, towns([column('name', text(10)), bytes]));
      await db.run(`INSERT INTO towns (name) VALUES ('Bonn')`);
      const triggers =
        engine === 'sqlite'
          ? `SELECT name, 'towns' FROM sqlite_schema WHERE type = 'trigger'`
          : `SELECT tgname, tgrelid::regclass FROM pg_trigger WHERE tgrelid = 'towns'::regclass AND NOT tgisinternal`;
      const [[first = ''] = []] = await db.rows(`${triggers} ORDER BY 1`);
      assert.match(String(first), /^towns__created_[0-9a-f]{8}$/);
      await db.run(`DROP TRIGGER "${first}"${engine === 'sqlite' ? '' : ' ON towns'}`);
      await db.run(`INSERT INTO towns (name) VALUES ('unseen')`);
      assert.deepEqual(await migrate(session, towns([column('name', text(10)), bytes])), [
        'towns: record changes anew',
      ]);
      await db.run(`DELETE FROM towns WHERE name = 'Bonn'`);
      assert.deepEqual(await told(db), [
        'created {"id":1,"name":"Ulm","raw":null}',
        'created {"id":2,"name":"Bonn","raw":null}',
        'deleted {"id":2,"name":"Bonn","raw":null}',
      ]);
    });

    test('a migration writes no events, and those of other writers meanwhile have the new names', async () => {
      await using db = await open();
      const session = sessionOn(db);
      const size = column('size', { kind: 'integer' }, { nullable: true });
      await migrate(session, towns([name, size]));
      await db.run(`INSERT INTO towns (name) VALUES ('Ulm'), ('Bonn')`);
      const filled = column('size', { kind: 'integer' }, { default: { kind: 'value', value: 7 } });
      const at = column('at', { kind: 'timestamp' }, { default: { kind: 'now' } });
      const columns = [id, { ...name, name: 'title', was: 'name' }, filled, at];
      const cities = relation('cities', columns, { changes: true, was: 'towns' });
      let writes = 0;
      const write = (table: string) => db.run(`UPDATE ${table} SET size = ${100 + writes} WHERE id = 1 `);
      const steps: string[] = [];
      await migrateRelations(session, [cities], {
        rewrite: true,
        async onStep({ what }) {
          steps.push(what);
          await write('cities').catch(() => write('towns'));
          writes++;
        },
      });
      assert.ok(writes >= 3, steps.join());
      const position = engine === 'sqlite' ? 'position' : 'seq';
      const stored = await db.rows(
        `SELECT relation, type, "row" FROM relation_events WHERE relation <> '' ORDER BY ${position}`,
      );
      const events = stored.map(([of, type, row]) =>
        relationEvent(new Map([['cities', cities]]), {
          position: 1,
          at: 1,
          relation: String(of),
          type: type as ChangeType,
          row: String(row),
          hex: [],
        }),
      );
      const seen = events.map(({ relation: of, key, type, json }) => {
        const { title, size: number } = (JSON.parse(json) as { row: Record<string, unknown> }).row;
        return `${of} ${type} ${key} ${title} ${number}`;
      });
      assert.deepEqual(seen, [
        'cities created 1 Ulm null',
        'cities created 2 Bonn null',
        ...Array.from({ length: writes }, (_, i) => `cities updated 1 Ulm ${100 + i}`),
      ]);
      const [second] = await db.rows('SELECT size, "at" IS NOT NULL FROM cities WHERE id = 2');
      assert.deepEqual([Number(second?.[0]), Boolean(second?.[1])], [7, true]);
      if (engine !== 'postgres') return;
      assert.equal(
        stored.filter(([of]) => of === 'towns').length,
        3,
        'the table and its triggers change at once',
      );
    });

    test('without a relation that records changes there is no log', async () => {
      await using db = await open();
      const session = sessionOn(db);
      assert.deepEqual(await migrate(session, towns([name], { changes: false })), ['towns: create table']);
      await assert.rejects(async () => db.rows('SELECT * FROM relation_events'));
    });
  });
}

for (const [engine, open] of Object.entries(engines)) {
  test(`a read of the log of changes is bounded by its size on ${engine}`, async () => {
    await using store = await open();
    const opened = await store.current.openRelations(towns([column('name', text(65_000))]));
    assert.ok(opened.changes !== undefined);
    const events = await opened.changes.follow();
    const rows = Array.from({ length: 30 }, (_, i) => [null, String(i % 10).repeat(60_000)]);
    await opened.stores.get('towns')?.create(rows);
    const late = await opened.changes.follow(events.start);
    for (const follower of [events, late]) {
      let found = 0;
      while (found < 30) {
        const { value = [] } = await follower.next();
        found += value.length;
        const size = value.reduce((sum, { json }) => sum + json.length, 0);
        assert.ok(size > 0 && size < 400_000, `${size} characters at once`);
      }
      assert.equal(found, 30);
      await follower.return();
    }
  });
}
