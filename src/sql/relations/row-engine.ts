import { GenerationalCache } from '../../core/generational-cache.ts';
import type { MaybePromise } from '../../core/scheduler.ts';
import type { Storage } from '../../relations/codec.ts';
import type { RowValues } from '../../relations/rows/rows.ts';
import type { Bound, BoundText, RowDialect } from '../dialects/row-dialects.ts';
import type { FoundConstraint } from '../existing/writes.ts';
import type { PackedTexts, TextBounds } from '../list-sql.ts';
import type { Query, Step } from '../stores/sql.ts';
import type { ListEngine } from './row-lists.ts';
import type { RowSql } from './row-sql.ts';

/** The texts of statements, bounded in bytes. */
export function statementTexts(): GenerationalCache<string> {
  return new GenerationalCache(4 * 1024 * 1024);
}

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

/** A column of the first row of an earlier statement of a unit. */
export class EarlierColumn {
  /** Index of the statement. */
  readonly step: number;
  readonly column: number;
  /** The stored value as a driver that distinguishes types binds it. */
  readonly bind: (stored: unknown) => unknown;

  constructor(step: number, column: number, { read, bind }: Storage) {
    this.step = step;
    this.column = column;
    this.bind = (stored) => bind(read(stored));
  }
}

/** A statement of a unit. */
export interface UnitStep {
  readonly text: string;
  readonly values: readonly (Bound | EarlierColumn)[];
  /** How many rows it must have at least; the unit fails with fewer. */
  readonly least?: number;
  /** How many rows it may have; the unit fails with more. */
  readonly most?: number;
  /** The unit ends with success if the statement has rows, or none. */
  readonly stops?: 'found' | 'none';
  /** The place of a value that becomes all results so far, written by `keptResults`. */
  readonly kept?: number;
}

/** A statement failed, had too few or too many rows, or those of all statements so far are too large. */
type UnitFault = 'few' | 'many' | 'large' | 'engine';

/** A statement of a unit failed, or had too few, too many or too large rows; nothing was stored. */
export class UnitError extends Error {
  override readonly name = 'UnitError';
  readonly step: number;
  readonly fault: UnitFault;

  constructor(step: number, fault: UnitFault, cause?: unknown) {
    super(`Statement ${step} of a unit failed`, { cause });
    this.step = step;
    this.fault = fault;
  }
}

/** Runs units: statements of one transaction, of which later ones may use the results of earlier ones. */
export interface UnitEngine {
  readonly dialect: RowDialect;
  /**
   * Runs statements in one commit, or undoes them if it `isTrial`; resolves to the rows of each that ran.
   * Fails with UnitError.
   */
  unit(steps: readonly UnitStep[], isTrial?: boolean): Promise<readonly Rows[]>;
  /** The text of a statement. */
  textOf(query: Query): string;
  /** The statements that must follow the insert of a row that gives its serial. */
  afterGiven(sql: RowSql): readonly BoundText[];
  /** Whether a write failed because of a constraint between rows. */
  isConflict(error: unknown): boolean;
  /** Whether a write failed because of a constraint on the values of one row. */
  isUnfit(error: unknown): boolean;
  /** The constraint that refused a write; undefined if none did. */
  constraintOf(error: unknown): FoundConstraint | undefined;
}

/** What the engines do differently. */
export interface RowEngine extends UnitEngine, ListEngine {
  /** Runs a short read that sees all acknowledged writes. */
  readLatest(statement: BoundText): MaybePromise<Rows>;
  /** Joins the texts in the first column of a long read. */
  texts(statement: BoundText, bounds: TextBounds): MaybePromise<PackedTexts>;
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
