import type { Storage } from '../../relations/codec.ts';
import type { Query } from '../stores/sql.ts';
import type { Bound, BoundText, RowDialect, RowSql } from './row-sql.ts';

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

/** A statement of a unit failed, or had too few or too many rows; nothing was stored. */
export class UnitError extends Error {
  override readonly name = 'UnitError';
  readonly step: number;
  readonly fault: 'few' | 'many' | 'engine';

  constructor(step: number, fault: UnitError['fault'], cause?: unknown) {
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
  unit(steps: readonly UnitStep[], isTrial?: boolean): Promise<readonly (readonly (readonly unknown[])[])[]>;
  /** The text of a statement. */
  textOf(query: Query): string;
  /** The statements that must follow the insert of a row that gives its serial. */
  afterGiven(sql: RowSql): readonly BoundText[];
  /** Whether a write failed because of a constraint between rows. */
  isConflict(error: unknown): boolean;
  /** Whether a write failed because of a constraint on the values of one row. */
  isUnfit(error: unknown): boolean;
}
