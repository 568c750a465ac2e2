import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { MovedRow, MovedTable } from './tables.ts';

/** One of the two databases of a move, which has it for itself. Whoever opens it disposes of it. */
export interface MoveEnd extends AsyncDisposable {
  /** The same for this database and its copies, another one for every other database. */
  readonly origin: string;
  count(table: MovedTable): MaybePromise<number>;
  /** The rows whose key is greater than `after`, in the order of their keys: as many as a batch has, none at the end. */
  read(table: MovedTable, after: number): MaybePromise<readonly MovedRow[]>;
  /** Fails with MoveError when a service has come meanwhile, where nothing keeps one from coming. */
  checkAlone(): MaybePromise<void>;
  /** The highest key that was ever given; 0 when none was. */
  counter(table: MovedTable): MaybePromise<number>;
}

/** Where the rows go. A database with a move that has not ended can be opened by nothing but a move. */
export interface MoveTarget extends MoveEnd {
  /** The origin of the source of a move that has not ended. */
  readonly unfinished: string | undefined;
  /** Marks the database as the target of a move. Fails with MoveError when a service runs on it. */
  begin(origin: string): MaybePromise<void>;
  /** Removes all rows. */
  clear(): MaybePromise<void>;
  /** The highest key that is there; 0 when there is none. */
  last(table: MovedTable): MaybePromise<number>;
  /** Stores rows with their keys, all or none; durable once it has returned or resolved. */
  write(table: MovedTable, rows: readonly MovedRow[]): MaybePromise<void>;
  /** No key up to `counter` is given to a new row. */
  setCounter(table: MovedTable, counter: number): MaybePromise<void>;
  /** Takes the mark away. */
  finish(): MaybePromise<void>;
}
