import type { SQLInputValue, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/store-errors.ts';
import { READ_SAMPLE, type ReadTally } from '../observer.ts';

/** A value for a `?`, or values for `:names`. */
type Bound = SQLInputValue | Readonly<Record<string, SQLInputValue>>;

/** The statement's two signatures as one. */
interface Bindable {
  get(...values: readonly Bound[]): unknown;
  all(...values: readonly Bound[]): unknown;
}

/** Runs a statement that returns one row at most; `T` is the shape of its columns. */
export function readRow<T>(statement: StatementSync, ...values: readonly Bound[]): T | undefined {
  try {
    return (statement as Bindable).get(...values) as T | undefined;
  } catch (cause) {
    throw new StoreUnavailableError('The read failed', { cause });
  }
}

/** Runs a statement that returns any number of rows; `T` is the shape of their columns. */
export function readRows<T>(statement: StatementSync, ...values: readonly Bound[]): readonly T[] {
  try {
    return (statement as Bindable).all(...values) as T[];
  } catch (cause) {
    throw new StoreUnavailableError('The read failed', { cause });
  }
}

/** Counts a read, and now and then times it. */
export function counted<T>(tally: ReadTally, read: () => T): T {
  if (tally.count++ % READ_SAMPLE !== 0) return read();
  const began = performance.now();
  const found = read();
  tally.timed((performance.now() - began) / 1_000);
  return found;
}
