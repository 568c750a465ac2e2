import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { MovedRow, MovedTable } from './tables.ts';

/** One of the two databases of a move, locked against services. The opener disposes of it. */
export interface MoveEnd extends AsyncDisposable {
  /** Identifies this database and its copies. */
  readonly origin: string;
  count(table: MovedTable): MaybePromise<number>;
  /** A batch of rows with keys greater than `after`, in key order; empty at the end. */
  read(table: MovedTable, after: number): MaybePromise<readonly MovedRow[]>;
  /** Fails with MoveError when a service uses the database. */
  checkAlone(): MaybePromise<void>;
  /** The highest key that was ever used; 0 when none was. */
  counter(table: MovedTable): MaybePromise<number>;
}

/** The target of a move. While the move is unfinished only another move can open it. */
export interface MoveTarget extends MoveEnd {
  /** The origin of the source of an unfinished move. */
  readonly unfinished: string | undefined;
  /** Marks the database as the target of a move. Fails with MoveError while a service uses it. */
  begin(origin: string): MaybePromise<void>;
  /** Removes all rows. */
  clear(): MaybePromise<void>;
  /** The highest existing key; 0 without rows. */
  last(table: MovedTable): MaybePromise<number>;
  /** Stores rows with their keys in one transaction; durable once it has returned or resolved. */
  write(table: MovedTable, rows: readonly MovedRow[]): MaybePromise<void>;
  /** Reserves all keys up to `counter`. */
  setCounter(table: MovedTable, counter: number): MaybePromise<void>;
  /** Removes the mark, which opens the database for services. */
  finish(): MaybePromise<void>;
}
