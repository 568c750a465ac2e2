import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { BatchResult, WriteResult } from '../batch-queue.ts';
import { createPruner } from '../sqlite-inbox/pruner.ts';
import { AFTER_PRUNE, WRITES, type WriteName } from './write-statements.ts';

/** One statement of a write, with its values. */
export interface Step {
  readonly statement: WriteName;
  readonly values: readonly SQLInputValue[];
}

/** A write: steps that commit together. */
export type Write = readonly Step[];

/** A row as an array of columns. */
export type Row = readonly SQLOutputValue[];

/**
 * The rows of each step of a write. A step without RETURNING has one row, the last insert id, if it changed
 * anything.
 */
export type StepRows = readonly (readonly Row[])[];

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC (sqlite.org/rescode.html). */
const FSYNC_FAILED: ReadonlySet<unknown> = new Set([1034, 1290]);

/**
 * Runs batches of writes on one connection, one transaction per batch. If a write fails, the batch is rolled
 * back and run again with a savepoint per write, so that only the failing write fails. The caller closes the
 * connection.
 */
export class BatchExecutor {
  readonly #db: DatabaseSync;
  readonly #statements: ReadonlyMap<WriteName, (values: Step['values']) => readonly Row[]>;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #undo: StatementSync;
  readonly #touch: StatementSync;
  readonly #check: WriteCheck;
  /**
   * Whether SQLite's own numbering of deliveries is correct: a delivery was stored since the last prune.
   * Initially false, because an earlier process may have pruned.
   */
  #continuesNumbers = false;

  constructor(db: DatabaseSync) {
    this.#db = db;
    const names = Object.keys(WRITES) as (keyof typeof WRITES)[];
    const prune = createPruner(db);
    this.#statements = new Map<WriteName, (values: Step['values']) => readonly Row[]>([
      ...names.map((name) => [name, prepareRows(db.prepare(WRITES[name]))] as const),
      [
        'prune',
        (values) => {
          this.#continuesNumbers = false;
          return [prune(values)];
        },
      ],
    ]);
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#savepoint = db.prepare('SAVEPOINT write_in_batch');
    this.#release = db.prepare('RELEASE write_in_batch');
    this.#undo = db.prepare('ROLLBACK TO write_in_batch');
    // Writes a page without changing anything.
    this.#touch = db.prepare('PRAGMA user_version = 0');
    this.#check = new WriteCheck(db);
  }

  /** Returns after COMMIT, hence after the fsync of the WAL; a write with an error has stored nothing. */
  execute(writes: readonly Write[]): BatchResult<StepRows> {
    try {
      this.#begin.run();
      const results = this.#together(writes) ?? this.#oneByOne(writes);
      this.#commit.run();
      this.#continuesNumbers ||= results.some(hasStored(writes));
      return { results: this.#checked(writes, results) };
    } catch (error) {
      if (this.#db.isTransaction) this.#rollback.run();
      const message = String(error);
      const results = writes.map(() => ({ error: message }));
      return isFsyncFailure(error) ? { results, fatal: message } : { results };
    }
  }

  /** Adds the result of the write check if the batch contains an empty write, which is a health check. */
  #checked(writes: readonly Write[], results: readonly WriteResult<StepRows>[]) {
    const error = writes.some(({ length }) => length === 0) ? this.#check.failure() : undefined;
    if (error === undefined) return results;
    return results.map((result, i) => (writes[i]?.length === 0 ? { error } : result));
  }

  /** Runs the writes without savepoints; if one fails, rolls back and returns undefined. */
  #together(writes: readonly Write[]): WriteResult<StepRows>[] | undefined {
    try {
      return writes.map((steps) => ({ rows: this.#run(steps) }));
    } catch (error) {
      this.#throwIfAborted(error);
      this.#rollback.run();
      this.#begin.run();
      return undefined;
    }
  }

  #oneByOne(writes: readonly Write[]): WriteResult<StepRows>[] {
    return writes.map((steps) => {
      this.#savepoint.run();
      try {
        const rows = this.#run(steps);
        this.#release.run();
        return { rows };
      } catch (error) {
        this.#throwIfAborted(error);
        this.#undo.run();
        this.#release.run();
        return { error: String(error) };
      }
    });
  }

  #run(steps: Write): StepRows {
    const rows = steps.map(({ statement, values }) => {
      const after = this.#continuesNumbers ? undefined : AFTER_PRUNE[statement];
      return this.#statements.get(after ?? statement)?.(values) ?? [];
    });
    // An empty write is a health check: only a page in the WAL proves that the file is writable.
    if (steps.length === 0) this.#touch.run();
    return rows;
  }

  /** Rethrows an error that ended the transaction (a full disk, an I/O error): it fails the whole batch. */
  #throwIfAborted(error: unknown): void {
    if (!this.#db.isTransaction || isFsyncFailure(error)) throw error;
  }
}

function prepareRows(statement: StatementSync): (values: Step['values']) => readonly Row[] {
  if (statement.columns().length > 0) {
    statement.setReturnArrays(true);
    return (values) => statement.all(...values) as unknown as readonly Row[];
  }
  return (values) => {
    const { changes, lastInsertRowid } = statement.run(...values);
    return changes === 0 ? [] : [[lastInsertRowid]];
  };
}

/** Whether a write was an append that stored a delivery, which restores SQLite's own numbering. */
function hasStored(writes: readonly Write[]): (result: WriteResult<StepRows>, i: number) => boolean {
  return (result, i) => 'rows' in result && isAppend(writes[i]?.[0]) && (result.rows[0] ?? []).length > 0;
}

function isAppend(step: Step | undefined): boolean {
  return step !== undefined && AFTER_PRUNE[step.statement] !== undefined;
}

/** Whether an error reports a failed fsync. */
export function isFsyncFailure(error: unknown): boolean {
  return FSYNC_FAILED.has((Object(error) as { readonly errcode?: unknown }).errcode);
}

/** One row of each kind that the doors store, on the pages where their next rows would go. */
const INSERTS = [
  `INSERT INTO users (name, email) VALUES ('', '')`,
  `INSERT INTO deliveries (id, source, data_pointer, body, received_at, dedup_key)
   VALUES ('', '', '', x'', 0, lower(hex(randomblob(16))))`,
  `INSERT INTO jobs (delivery, due_at, target)
   VALUES (last_insert_rowid(), 0, coalesce((SELECT target FROM jobs ORDER BY seq DESC LIMIT 1), ''))`,
];

/**
 * Checks that the doors can write: a damaged page fails only writes to its table. It stores rows as the doors
 * do and rolls them back, which leaves nothing in the WAL.
 */
class WriteCheck {
  readonly #db: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #inserts: readonly StatementSync[];
  readonly #rollback: StatementSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#inserts = INSERTS.map((sql) => db.prepare(sql));
    this.#rollback = db.prepare('ROLLBACK');
  }

  /** Returns why a write would fail; undefined if it would succeed. Must run outside a transaction. */
  failure(): string | undefined {
    try {
      this.#begin.run();
      for (const insert of this.#inserts) insert.run();
      return undefined;
    } catch (error) {
      return String(error);
    } finally {
      if (this.#db.isTransaction) this.#rollback.run();
    }
  }
}
