import type { SQLInputValue, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../errors.ts';

/** Runs a statement that returns one row at most; `T` is the shape of its columns. */
export function readRow<T>(statement: StatementSync, ...values: readonly SQLInputValue[]): T | undefined {
  try {
    return statement.get(...values) as T | undefined;
  } catch (cause) {
    throw new StoreUnavailableError('The read failed', { cause });
  }
}
