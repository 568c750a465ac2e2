import type { DatabaseSync } from 'node:sqlite';
import { SQLITE_BASE64 } from '../../relations/codecs.ts';
import { isServed, runningService } from '../sqlite/service-lock.ts';
import { diffTables } from './diff.ts';
import { lossQuery } from './drop.ts';
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
  return {
    engine: 'sqlite',
    plan(declared) {
      const diff = diffTables(declared, readSqliteCatalogue(db));
      return { steps: planSqlite(diff), undeclared: diff.undeclared };
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
    exclusively: (work) => work(),
    drop(loss, write) {
      db.function(SQLITE_BASE64.name, { deterministic: true }, SQLITE_BASE64.call);
      const current = readSqliteCatalogue(db).find(({ name }) => name === loss.table);
      if (current === undefined) return;
      rebuild(db, () => {
        let lines: string[] = [];
        for (const [line] of iterate(db, lossQuery('sqlite', current, loss))) {
          if (lines.push(String(line)) < WRITTEN) continue;
          write(lines);
          lines = [];
        }
        write(lines);
        const { declared, column } = loss;
        db.exec(
          column === undefined || declared === undefined
            ? `DROP TABLE ${identifier(loss.table)}`
            : rebuildScript(declared, current, new Map(), column),
        );
      });
    },
    apply({ sql, isRebuild }) {
      for (const text of sql) {
        if (isRebuild === true) rebuild(db, () => db.exec(text));
        else inTransaction(db, () => db.exec(text));
      }
    },
  };
}

/** Rows that a drop writes to its file at a time. */
const WRITTEN = 1_000;

/**
 * Replaces or drops a table in one transaction without foreign keys, which would delete the rows of other tables with the old
 * table, and with `legacy_alter_table`, so that the rename does not change what refers to the table. Neither
 * can change within a transaction.
 */
function rebuild(db: DatabaseSync, work: () => void): void {
  const [enforced] = Object.values(db.prepare('PRAGMA foreign_keys').get() ?? {});
  db.exec('PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON');
  try {
    inTransaction(db, () => {
      const before = brokenReferences(db);
      work();
      const broken = brokenReferences(db) - before;
      if (broken > 0) throw new Error(`${broken} rows would refer to rows that do not exist`);
    });
  } finally {
    db.exec(`PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ${enforced}`);
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

function brokenReferences(db: DatabaseSync): number {
  const row = db.prepare('SELECT count(*) AS n FROM pragma_foreign_key_check').get();
  return Number(row?.n);
}
