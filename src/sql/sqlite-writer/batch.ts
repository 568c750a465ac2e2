import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import { GenerationalCache } from '../../core/generational-cache.ts';
import type { BatchResult, WriteResult } from '../batch-queue.ts';
import { isTooLong, StatementTime } from '../statement-time.ts';

/** One statement of a write, by its name in the registry or as SQL, with its values. */
export interface Step {
  readonly statement: string;
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

/** Runs a step in the open transaction; returns its rows. */
export type RunStep = (values: Step['values']) => readonly Row[];

/** What a writing connection can run. The features of the database hand it over (see `sqlite/writes.ts`). */
export interface WriteRegistry {
  /** Statements by name, prepared when the connection opens. */
  readonly statements: Readonly<Record<string, string>>;
  /** Statements by name that are prepared on first use. */
  readonly rare: Readonly<Record<string, string>>;
  /** Creates the steps that are more than one statement. */
  programs(db: DatabaseSync): Programs;
  /** Statements that a health check runs and rolls back. */
  readonly checks: readonly string[];
}

/** Steps that run several statements or depend on earlier commits. */
export interface Programs {
  readonly steps: Readonly<Record<string, RunStep>>;
  /** Called after each COMMIT. */
  committed(writes: readonly Write[], results: readonly WriteResult<StepRows>[]): void;
}

/** The name of the step that runs a unit; its values are the shape as JSON, then those of the statements. */
export const UNIT = 'unit';

/**
 * The statements of a unit, in which later ones may use the results of earlier ones. It runs as one step, so
 * that other commits do not wait while results travel to the service and back.
 */
export interface UnitShape {
  readonly texts: readonly string[];
  readonly steps: readonly UnitShapeStep[];
  /** Whether the unit is undone and only its results are wanted. */
  readonly isTrial: boolean;
}

interface UnitShapeStep {
  /** Index of the text. */
  readonly text: number;
  /** How many of the given values it takes. */
  readonly count: number;
  /** Values that are columns of the first row of an earlier statement: place, statement and column. */
  readonly earlier?: readonly (readonly [place: number, step: number, column: number])[];
  /** The place of a value that is all results so far, as `keptResults` writes them. */
  readonly kept?: number;
  /** How many rows it must have at least; the unit fails with fewer. */
  readonly least?: number;
  /** How many rows it may have; the unit fails with more. */
  readonly most?: number;
  /** The unit ends with success if the statement has rows, or none. */
  readonly stops?: 'found' | 'none';
}

/** Maximum size of the rows that the statements of a unit return, in bytes. */
export const MAX_RESULTS = 8 * 1024 * 1024;

/** The size of the large values of rows, in bytes. */
export function sizeOfRows(rows: readonly (readonly unknown[])[]): number {
  let bytes = 0;
  for (const row of rows) {
    for (const value of row) if (typeof value === 'string' || isBytes(value)) bytes += value.length;
  }
  return bytes;
}

/** The results of statements as a text that can be stored. */
export function keptResults(results: readonly (readonly (readonly unknown[])[])[]): string {
  return JSON.stringify(
    results.map((rows) => rows.map((row) => row.map((value) => (isBytes(value) ? hexOf(value) : value)))),
  );
}

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
const hexOf = (bytes: Uint8Array) => ({ hex: Buffer.from(bytes).toString('hex') });

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC (sqlite.org/rescode.html). */
const FSYNC_FAILED: ReadonlySet<unknown> = new Set([1034, 1290]);

/** Steps between two looks at the time that a write has taken. */
const LOOK = 64;

/** Maximum size of the texts of prepared statements that are not in the registry, in bytes. */
const MAX_TEXTS = 1024 * 1024;

/**
 * Runs batches of writes on one connection, one transaction per batch. If a write fails, the batch is rolled
 * back and run again with a savepoint per write, so that only the failing write fails. The caller closes the
 * connection.
 */
export class BatchExecutor {
  readonly #db: DatabaseSync;
  readonly #steps: Map<string, RunStep>;
  readonly #rare: WriteRegistry['rare'];
  /** The statements that were given as SQL. */
  readonly #texts = new GenerationalCache<RunStep>(MAX_TEXTS);
  readonly #programs: Programs;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #undo: StatementSync;
  readonly #touch: StatementSync;
  readonly #check: WriteCheck;
  readonly #time: StatementTime;
  /** The write of the batch that took too long: it is not run again. */
  #late: { readonly nth: number; readonly error: unknown } | undefined;

  constructor(db: DatabaseSync, { statements, rare, programs, checks }: WriteRegistry) {
    this.#db = db;
    this.#rare = rare;
    this.#time = new StatementTime(db);
    this.#programs = programs(db);
    this.#steps = new Map([
      ...Object.entries(statements).map(([name, sql]) => [name, prepareStep(db, sql)] as const),
      ...Object.entries(this.#programs.steps),
      [UNIT, (values: Step['values']) => this.#runUnit(values)],
    ]);
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#savepoint = db.prepare('SAVEPOINT write_in_batch');
    this.#release = db.prepare('RELEASE write_in_batch');
    this.#undo = db.prepare('ROLLBACK TO write_in_batch');
    // Writes a page without changing anything.
    this.#touch = db.prepare('PRAGMA user_version = 0');
    this.#check = new WriteCheck(db, checks);
  }

  /** Returns after COMMIT, hence after the fsync of the WAL; a write with an error has stored nothing. */
  execute(writes: readonly Write[]): BatchResult<StepRows> {
    try {
      this.#begin.run();
      const results = this.#together(writes) ?? this.#oneByOne(writes);
      this.#commit.run();
      this.#programs.committed(writes, results);
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
      this.#late = undefined;
      return writes.map((steps, nth) => {
        try {
          return { rows: this.#run(steps) };
        } catch (error) {
          if (isTooLong(error)) this.#late = { nth, error };
          throw error;
        }
      });
    } catch (error) {
      this.#throwIfAborted(error);
      this.#rollback.run();
      this.#begin.run();
      return undefined;
    }
  }

  #oneByOne(writes: readonly Write[]): WriteResult<StepRows>[] {
    return writes.map((steps, nth) => {
      if (this.#late?.nth === nth) return { error: String(this.#late.error) };
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
    this.#time.beginAtLook();
    const rows = steps.map(({ statement, values }, nth) => {
      if (nth % LOOK === LOOK - 1) this.#time.check();
      return this.#step(statement)(values);
    });
    // An empty write is a health check: only a page in the WAL proves that the file is writable.
    if (steps.length === 0) this.#touch.run();
    return rows;
  }

  #step(statement: string): RunStep {
    return this.#steps.get(statement) ?? this.#texts.get(statement) ?? this.#prepare(statement);
  }

  /** Runs a unit; its rows begin with the index of their statement. An error names the statement. */
  #runUnit([shape, ...given]: Step['values']): readonly Row[] {
    const { texts, steps, isTrial } = JSON.parse(String(shape)) as UnitShape;
    const results: (readonly Row[])[] = [];
    let taken = 0;
    let bytes = 0;
    if (isTrial) this.#db.exec('SAVEPOINT unit');
    for (const [nth, { text, count, earlier = [], kept, least = 0, most, stops }] of steps.entries()) {
      const values = given.slice(taken, taken + count);
      taken += count;
      for (const [place, step, column] of earlier) values[place] = results[step]?.[0]?.[column] ?? null;
      if (kept !== undefined) values[kept] = keptResults(results);
      let rows: readonly Row[];
      try {
        rows = this.#step(texts[text] ?? '')(values);
      } catch (error) {
        this.#throwIfAborted(error);
        throw new Error(`statement ${nth} of a unit: ${String(error)}`);
      }
      results.push(rows);
      bytes += sizeOfRows(rows);
      if (bytes > MAX_RESULTS) throw new Error(`statement ${nth} of a unit: large`);
      if (rows.length < least) throw new Error(`statement ${nth} of a unit: few`);
      if (most !== undefined && rows.length > most) throw new Error(`statement ${nth} of a unit: many`);
      if (stops === (rows.length > 0 ? 'found' : 'none')) break;
    }
    if (isTrial) this.#db.exec('ROLLBACK TO unit; RELEASE unit');
    return results.flatMap((rows, nth) => rows.map((row): Row => [nth, ...row]));
  }

  /** Prepares a rare statement, or one that is given as SQL: the names of the registry have no spaces. */
  #prepare(statement: string): RunStep {
    const sql = this.#rare[statement] ?? (statement.includes(' ') ? statement : undefined);
    if (sql === undefined) throw new Error(`No statement of the registry is named ${statement}`);
    const step = prepareStep(this.#db, sql);
    if (sql === statement) this.#texts.set(sql, step, sql.length);
    else this.#steps.set(statement, step);
    return step;
  }

  /** Rethrows an error that ended the transaction (a full disk, an I/O error): it fails the whole batch. */
  #throwIfAborted(error: unknown): void {
    if (!this.#db.isTransaction || isFsyncFailure(error)) throw error;
  }
}

/**
 * Prepares a statement as a step. RETURNING costs SQLite a temporary table per run, so frequent statements
 * avoid it: their row is derived from the change count.
 */
export function prepareStep(db: DatabaseSync, sql: string): RunStep {
  const statement = db.prepare(sql);
  if (statement.columns().length > 0) {
    statement.setReturnArrays(true);
    return (values) => statement.all(...values) as unknown as readonly Row[];
  }
  return (values) => {
    const { changes, lastInsertRowid } = statement.run(...values);
    return changes === 0 ? [] : [[lastInsertRowid]];
  };
}

/** Whether an error reports a failed fsync. */
export function isFsyncFailure(error: unknown): boolean {
  return FSYNC_FAILED.has((Object(error) as { readonly errcode?: unknown }).errcode);
}

/**
 * Checks that the doors can write: a damaged page fails only writes to its table. It stores rows as the doors
 * do and rolls them back, which leaves nothing in the WAL.
 */
class WriteCheck {
  readonly #db: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #inserts: readonly StatementSync[];
  readonly #rollback: StatementSync;

  constructor(db: DatabaseSync, inserts: readonly string[]) {
    this.#db = db;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#inserts = inserts.map((sql) => db.prepare(sql));
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
