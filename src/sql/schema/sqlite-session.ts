import type { DatabaseSync } from 'node:sqlite';
import type { MaybePromise } from '../../core/scheduler.ts';
import { SQLITE_BASE64 } from '../../relations/codecs.ts';
import { withChangeLog } from '../changes/change-triggers.ts';
import { isServed, runningService } from '../sqlite/service-lock.ts';
import { diffTables } from './diff.ts';
import { lossQuery, requireUnreferenced } from './drop.ts';
import { SchemaError } from './migrate.ts';
import { readSqliteCatalogue } from './sqlite-catalogue.ts';
import { planSqlite, rebuildScript } from './sqlite-plan.ts';
import type { SchemaSession } from './steps.ts';
import { identifier } from './tables.ts';

/** Migrates relations of a file through a writing connection, on which nothing else runs meanwhile. */
export function sqliteSession(db: DatabaseSync): SchemaSession {
  const rows = (sql: string) => {
    const statement = db.prepare(sql);
    statement.setReturnArrays(true);
    return statement.all() as unknown as readonly (readonly unknown[])[];
  };
  /** The version of the schema that the last plan or step saw. */
  let known: unknown;
  /** Runs `work` in a transaction, unless another process has changed the tables since the plan. */
  const changing = (work: () => void) => {
    inTransaction(db, () => {
      if (schemaVersion(db) !== known) throw new TablesChanged('Other processes keep changing the tables');
      work();
    });
    known = schemaVersion(db);
  };
  return {
    engine: 'sqlite',
    plan(declared) {
      db.exec('BEGIN');
      try {
        known = schemaVersion(db);
        const catalogue = readSqliteCatalogue(db);
        const diff = diffTables(declared, catalogue);
        const steps = withChangeLog('sqlite', diff, catalogue, planSqlite(diff));
        return { steps, undeclared: diff.undeclared };
      } finally {
        db.exec('COMMIT');
      }
    },
    rows,
    rowsOf(table) {
      const exists = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table) !== undefined;
      return exists ? Number(rows(`SELECT count(*) FROM ${identifier(table)}`)[0]?.[0]) : 0;
    },
    conflict() {
      const path = db.location();
      return path !== null && isServed(path) ? `${runningService(path)} Stop it first.` : undefined;
    },
    exclusively: (work) => retriedIfChanged(work),
    drop(loss, file) {
      db.function(SQLITE_BASE64.name, { deterministic: true }, SQLITE_BASE64.call);
      const tables = readSqliteCatalogue(db);
      const current = tables.find(({ name }) => name === loss.table);
      if (current === undefined) return;
      requireUnreferenced(tables, loss);
      rebuild(db, changing, () => {
        let lines: string[] = [];
        for (const [line] of iterate(db, lossQuery('sqlite', current, loss))) {
          if (lines.push(String(line)) < WRITTEN) continue;
          file.write(lines);
          lines = [];
        }
        file.write(lines);
        file.complete();
        const { declared, column } = loss;
        db.exec(
          column === undefined || declared === undefined
            ? `DROP TABLE ${identifier(loss.table)}`
            : rebuildScript(declared, current, new Map(), column),
        );
      });
    },
    apply({ table, sql, isRebuild, isEdit }) {
      try {
        for (const text of sql) {
          if (isEdit === true) changing(() => editSchema(db, text));
          else if (isRebuild === true) rebuild(db, changing, () => db.exec(text));
          else changing(() => db.exec(text));
        }
      } catch (cause) {
        throw isConstraint(cause)
          ? new SchemaError(`${table}: rows do not fit: ${cause.message}`, { cause })
          : cause;
      }
    },
  };
}

/** Another process has changed the tables since they were compared with the declaration. */
class TablesChanged extends SchemaError {}

function schemaVersion(db: DatabaseSync): unknown {
  return db.prepare('PRAGMA schema_version').get()?.schema_version;
}

/** Runs `work`, which plans, again after another process has changed the tables. */
function retriedIfChanged<T>(work: () => MaybePromise<T>, attempts = 10): MaybePromise<T> {
  const retry = (error: unknown) => {
    if (!(error instanceof TablesChanged) || attempts === 1) throw error;
    return retriedIfChanged(work, attempts - 1);
  };
  try {
    const result = work();
    return result instanceof Promise ? result.catch(retry) : result;
  } catch (error) {
    return retry(error);
  }
}

/** Rows that a drop writes to its file at a time. */
const WRITTEN = 1_000;

/**
 * Replaces or drops a table in one transaction without foreign keys, which would delete the rows of other
 * tables with the old table, and with `legacy_alter_table`, so that the rename does not change what refers to the table. Neither
 * can change within a transaction.
 */
function rebuild(db: DatabaseSync, changing: (work: () => void) => void, work: () => void): void {
  const [enforced] = Object.values(db.prepare('PRAGMA foreign_keys').get() ?? {});
  db.exec('PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON');
  try {
    changing(() => {
      const before = brokenReferences(db);
      work();
      for (const [table, count] of brokenReferences(db)) {
        const broken = count - (before.get(table) ?? 0);
        if (broken > 0)
          throw new SchemaError(`${broken} rows of ${table} would refer to rows that do not exist`);
      }
    });
  } finally {
    db.exec(`PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ${enforced}`);
  }
}

/** Whether rows refuse a step that no count of violations has foreseen. */
function isConstraint(error: unknown): error is Error {
  const { errcode } = error as { readonly errcode?: unknown };
  return typeof errcode === 'number' && (errcode & 0xff) === SQLITE_CONSTRAINT;
}
/** sqlite.org/rescode.html */
const SQLITE_CONSTRAINT = 19;

/** Runs an edit of the text of a table, in a transaction. */
function editSchema(db: DatabaseSync, sql: string): void {
  db.enableDefensive(false);
  db.exec('PRAGMA writable_schema = ON');
  try {
    if (Number(db.prepare(sql).run().changes) !== 1) throw new Error('The text of the table has changed');
    // Other connections read the schema again if its version changes; this one does at the reset.
    db.exec(`PRAGMA schema_version = ${Number(schemaVersion(db)) + 1}`);
  } finally {
    db.exec('PRAGMA writable_schema = RESET');
    db.enableDefensive(true);
  }
}

function iterate(db: DatabaseSync, sql: string): Iterable<readonly unknown[]> {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return statement.iterate() as unknown as Iterable<readonly unknown[]>;
}

function inTransaction(db: DatabaseSync, work: () => void): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    work();
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** The number of rows that refer to no row, by table. */
function brokenReferences(db: DatabaseSync): ReadonlyMap<string, number> {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const check = db.prepare('SELECT count(*) AS n FROM pragma_foreign_key_check(?)');
  return new Map(
    tables.map(({ name }) => {
      try {
        return [String(name), Number(check.get(String(name))?.n)];
      } catch (error) {
        // A table that is made anew by a later step has no key for the reference yet.
        if (!String(error).includes('foreign key mismatch')) throw error;
        return [String(name), 0];
      }
    }),
  );
}
