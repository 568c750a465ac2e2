import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Step } from './steps.ts';
import type { DeclaredTable, Engine } from './tables.ts';

/** The steps from a catalogue to a declaration. */
export interface Plan {
  readonly steps: readonly Step[];
  /** Columns and tables of relations that no longer are declared: `books.subtitle`, `loans`. */
  readonly undeclared: readonly string[];
}

/** A column to drop, or a whole table. */
export interface Loss {
  readonly table: string;
  readonly column: string | undefined;
  /** The declaration of the table; undefined if it is no longer declared. */
  readonly declared: DeclaredTable | undefined;
}

/** What a migration needs of an engine: one connection that no other migration has. */
export interface SchemaSession {
  readonly engine: Engine;
  plan(declared: readonly DeclaredTable[]): MaybePromise<Plan>;
  rows(sql: string): MaybePromise<readonly (readonly unknown[])[]>;
  /** About how many rows a table has. */
  rowsOf(table: string): MaybePromise<number>;
  /** Runs `work` while no other process migrates the database. */
  exclusively<T>(work: () => MaybePromise<T>): MaybePromise<T>;
  /**
   * Drops a column, or a table if no column is given, in one transaction that first gives `write` its rows as
   * JSON, some at a time.
   */
  drop(loss: Loss, write: (lines: readonly string[]) => void): MaybePromise<void>;
  /** Makes a step. A failure leaves the step undone, or done in a part that the next plan continues. */
  apply(step: Step): MaybePromise<void>;
}
