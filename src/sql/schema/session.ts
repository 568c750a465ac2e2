import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Step } from './steps.ts';
import type { DeclaredTable, Engine } from './tables.ts';

/** The steps from a catalogue to a declaration. */
export interface Plan {
  readonly steps: readonly Step[];
  /** Columns and tables of relations that no longer are declared: `books.subtitle`, `loans`. */
  readonly undeclared: readonly string[];
}

/** What a migration needs of an engine: one connection that no other migration has. */
export interface SchemaSession {
  readonly engine: Engine;
  plan(declared: readonly DeclaredTable[]): MaybePromise<Plan>;
  rows(sql: string): MaybePromise<readonly (readonly unknown[])[]>;
  /** About how many rows a table has. */
  rowsOf(table: string): MaybePromise<number>;
  /** Makes a step. A failure leaves the step undone, or done in a part that the next plan continues. */
  apply(step: Step): MaybePromise<void>;
}
