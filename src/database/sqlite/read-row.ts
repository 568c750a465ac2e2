import type { SQLInputValue, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/store-errors.ts';

/** A value for a `?`, or values for `:names`. */
type Bound = SQLInputValue | Readonly<Record<string, SQLInputValue>>;

/** The overloads of `get` and `all` as one signature each. */
interface Bindable {
  get(...values: readonly Bound[]): unknown;
  all(...values: readonly Bound[]): unknown;
}

/** Runs a statement that returns at most one row; `T` is the shape of its columns. Throws StoreUnavailableError. */
export function readRow<T>(statement: StatementSync, ...values: readonly Bound[]): T | undefined {
  try {
    return (statement as Bindable).get(...values) as T | undefined;
  } catch (cause) {
    throw failed(cause);
  }
}

/** Runs a statement that returns any number of rows; `T` is the shape of their columns. Throws StoreUnavailableError. */
export function readRows<T>(statement: StatementSync, ...values: readonly Bound[]): readonly T[] {
  try {
    return (statement as Bindable).all(...values) as T[];
  } catch (cause) {
    throw failed(cause);
  }
}

function failed(cause: unknown): StoreUnavailableError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailableError(`The read failed: ${reason}`, { cause });
}
