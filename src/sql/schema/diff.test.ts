import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type BareDatabase, bareEngines } from '../../../test/support/relations/engines.ts';
import { library } from '../../../test/support/relations/hand-made.ts';
import { randomRelations } from '../../../test/support/relations/random-relations.ts';
import type { Relation } from '../../relations/relation.ts';
import { type Diff, diffTables } from './diff.ts';
import { readPostgresCatalogue } from './postgres-catalogue.ts';
import { planPostgres } from './postgres-plan.ts';
import { readSqliteCatalogue } from './sqlite-catalogue.ts';
import { planSqlite } from './sqlite-plan.ts';
import type { Step } from './steps.ts';
import { declaredTables, type Table } from './tables.ts';

async function planOf(on: BareDatabase, relations: readonly Relation[]) {
  const declared = declaredTables(on.engine, relations);
  if (on.engine === 'sqlite') {
    const diff = diffTables(declared, readSqliteCatalogue(on.db));
    return { diff: diff as Diff<Table>, steps: planSqlite(diff) };
  }
  const diff = diffTables(declared, await readPostgresCatalogue(on.db));
  return { diff: diff as Diff<Table>, steps: planPostgres(diff) };
}

/** Runs the steps on tables without rows. */
async function apply(on: BareDatabase, steps: readonly Step[]): Promise<void> {
  if (on.engine === 'sqlite') await on.run('PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON');
  for (const { sql } of steps) {
    for (const text of sql) {
      try {
        await on.run(text);
      } catch (cause) {
        throw new Error(`${(cause as Error).message}: ${text}`, { cause });
      }
    }
  }
}

async function clear(on: BareDatabase): Promise<void> {
  const sql =
    on.engine === 'sqlite'
      ? "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
      : "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'";
  if (on.engine === 'sqlite') await on.run('PRAGMA foreign_keys = OFF');
  for (const [name] of await on.rows(sql))
    await on.run(`DROP TABLE "${name}"${on.engine === 'sqlite' ? '' : ' CASCADE'}`);
}

const shown = ({ diff }: { readonly diff: Diff<Table> }) =>
  JSON.stringify(
    diff.tables
      .map(({ table, current, changes }) => ({ name: table.name, isNew: current === undefined, changes }))
      .filter(({ isNew, changes }) => isNew || changes.length > 0),
    null,
    1,
  );

for (const [engine, open] of Object.entries(bareEngines)) {
  const runs = engine === 'sqlite' ? 100 : 20;
  describe(engine, () => {
    test('a declaration whose plan was applied has no differences', async () => {
      await using db = await open();
      await fc.assert(
        fc.asyncProperty(fc.oneof(randomRelations, fc.constant(library)), async (relations) => {
          await clear(db);
          const { steps } = await planOf(db, relations);
          assert.ok(steps.every((step) => step.class === 'additive'));
          await apply(db, steps);
          const again = await planOf(db, relations);
          assert.equal(shown(again), '[]');
          assert.deepEqual([again.steps, again.diff.undeclared], [[], []]);
        }),
        { numRuns: runs },
      );
    });

    test('the plan from any declaration to another leaves no differences', async () => {
      await using db = await open();
      let applied = 0;
      await fc.assert(
        fc.asyncProperty(randomRelations, randomRelations, async (before, after) => {
          await clear(db);
          await apply(db, (await planOf(db, before)).steps);
          const { steps } = await planOf(db, after);
          if (steps.some(({ obstacle }) => obstacle !== undefined)) return;
          applied++;
          await apply(db, steps);
          const again = await planOf(db, after);
          assert.equal(shown(again), '[]');
          assert.deepEqual(again.steps, []);
        }),
        { numRuns: runs },
      );
      assert.ok(applied > runs / 4, `${applied} of ${runs} plans could be applied`);
    });
  });
}
