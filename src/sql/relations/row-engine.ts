import type { MaybePromise } from '../../core/scheduler.ts';
import type { RowValues } from '../../relations/rows/rows.ts';
import type { PackedTexts } from '../list-sql.ts';
import type { Step } from '../stores/sql.ts';
import type { BoundText, RowSql } from './row-sql.ts';
import type { UnitEngine } from './units.ts';

/** Rows of a statement, as arrays of columns. */
export type Rows = readonly (readonly unknown[])[];

/** New rows with their version. */
export interface NewRows {
  readonly rows: readonly RowValues[];
  readonly version: number;
}

/** Statements that store rows. */
interface ManyInserted {
  readonly steps: readonly BoundText[];
  /** The numbers that the engine has assigned to the rows, in order, from the results of the statements. */
  serials(results: readonly Rows[]): readonly number[];
}

/** What the engines do differently. */
export interface RowEngine extends UnitEngine {
  /** Runs a read; a long one does not keep others waiting. */
  read(statement: BoundText, isLong?: boolean): MaybePromise<Rows>;
  /** Runs a short read that sees all acknowledged writes. */
  readLatest(statement: BoundText): MaybePromise<Rows>;
  /** Joins the texts in the first column of a long read, up to about `maxBytes`. */
  texts(statement: BoundText, maxBytes: number): MaybePromise<PackedTexts>;
  /** Runs one statement, durably. */
  write(statement: BoundText): Promise<Rows>;
  /** Stores rows in one commit; resolves to the serial of each, undefined without one. */
  insert(sql: RowSql, rows: NewRows): Promise<readonly (number | undefined)[]>;
  /** The statements that store rows which name the same columns. */
  insertMany(sql: RowSql, rows: readonly RowValues[], version: number): ManyInserted;
  /** Stores a row unless it is there; resolves to whether it did. */
  insertFree(sql: RowSql, row: RowValues, version: number): Promise<boolean>;
  /** Runs statements in one commit; resolves to the rows of each. */
  writeAll(steps: readonly (BoundText | Step)[]): Promise<readonly Rows[]>;
  /** The serial that the statement before it has assigned. */
  assigned(sql: RowSql): string;
}
