import { isComputed, type Relation, type Value } from '../relation.ts';
import type { IdempotencyKey, WriteCondition } from '../user.ts';

/** A stored row with its version: the time of its last change in milliseconds, and higher after each. */
export interface StoredRow {
  readonly values: readonly Value[];
  readonly version: number;
}

/** How a put treats a row that is there, or is not. */
export interface PutRule {
  readonly condition: WriteCondition | undefined;
  /** Whether a missing row is created. */
  readonly creates: boolean;
  /** Whether a row that is there is replaced. */
  readonly replaces: boolean;
}

/** The indexes of the columns that a put replaces by default: all but the key, and those that the engine computes. */
export function replacedIn({ columns, key }: Relation): readonly number[] {
  return columns.flatMap((column, i) => (key.includes(column.name) || isComputed(column) ? [] : [i]));
}

/** The columns of a put by their indexes. */
export interface PutColumns {
  /** Those that change in a row that is there; default: all but the key. */
  readonly replaced?: readonly number[] | undefined;
  /** Those that a row which is there must have as given. */
  readonly same?: readonly number[] | undefined;
}

/** Stands for a column of the row that an earlier write of the same transaction stores. */
export class EarlierValue {
  /** Index of the write. */
  readonly write: number;
  /** Index of the column. */
  readonly column: number;

  constructor(write: number, column: number) {
    this.write = write;
    this.column = column;
  }
}

/** A value of a write, perhaps one that only the transaction knows. */
export type Given = Value | EarlierValue;

/** A write of one row in a transaction of several. */
export type RowWrite = (
  | { readonly is: 'create'; readonly relation: string; readonly row: readonly Given[] }
  | Upsert
  | {
      readonly is: 'change';
      readonly relation: string;
      readonly key: readonly Given[];
      /** The changed columns by their index. */
      readonly patch: ReadonlyMap<number, Given>;
      readonly condition: WriteCondition | undefined;
    }
  | ({
      readonly is: 'put';
      readonly relation: string;
      readonly row: readonly Given[];
      readonly rule: PutRule;
    } & PutColumns)
  | {
      readonly is: 'remove';
      readonly relation: string;
      readonly key: readonly Given[];
      readonly condition: WriteCondition | undefined;
    }
) & {
  /** Whether the rules of the caller do not limit it: a hook has added it. */
  readonly isUnruled?: boolean;
};

/** Creates a row, or changes the one that is there with the same values of a unique. */
export interface Upsert {
  readonly is: 'upsert';
  readonly relation: string;
  readonly row: readonly Given[];
  /** The columns of a unique or of the key; none of their values is null. */
  readonly on: readonly string[];
  /** The indexes of the columns that change in a row that is there; undefined if it stays as it is. */
  readonly merged: readonly number[] | undefined;
  /** Whether the client has given the key, so that a row with another key is not the same. */
  readonly givesKey: boolean;
  /** The indexes of columns that a row which is there must have as given. */
  readonly same?: readonly number[] | undefined;
}

/** The outcome of one of several writes; `found` is a row that an upsert has left as it is. */
export type WriteOutcome =
  | { readonly is: 'created' | 'changed' | 'found'; readonly row: StoredRow }
  | { readonly is: 'removed' };

/** The outcome of several writes with an idempotency key. */
export type WritesOnceOutcome =
  /** The outcomes of this or of an earlier request with the key. */
  | { readonly is: 'created'; readonly outcomes: readonly WriteOutcome[] }
  /** The key was used before with another body. */
  | { readonly is: 'reused' }
  /** A request with the key is in progress. */
  | { readonly is: 'running' };

/** One of several writes cannot be done for another reason than a conflict; nothing was stored. */
export class WriteRefusedError extends Error {
  override readonly name = 'WriteRefusedError';
  /** Index of the write. */
  readonly write: number;
  /**
   * The row is missing, does not meet the condition, a value of an earlier write does not fit its column, or the rows up to
   * it are too large together.
   */
  readonly reason: 'missing' | 'refused' | 'unfit' | 'large';

  constructor(write: number, reason: WriteRefusedError['reason'], cause?: unknown) {
    super(`Write ${write} is refused`, { cause });
    this.write = write;
    this.reason = reason;
  }
}

/** The writes that a client has asked for, among those of a transaction, and what each does. */
export type ShownWrites = readonly { readonly write: number; readonly is: WriteOutcome['is'] }[];

/** Several writes to the rows of all relations, in one transaction. */
export interface RowTransactions {
  /**
   * Does all writes or none, in order. Fails with RowsRefusedError, whose conflicts name the first refused
   * write as their row, or with WriteRefusedError.
   */
  write(writes: readonly RowWrite[]): Promise<readonly WriteOutcome[]>;
  /** Does writes once per key: their outcomes are stored in the same commit. */
  writeOnce(
    writes: readonly RowWrite[],
    key: IdempotencyKey,
    shown?: ShownWrites,
  ): Promise<WritesOnceOutcome>;
  /** The outcome of an earlier request with a key, if it kept which of its writes the client had asked for. */
  kept(key: IdempotencyKey): Promise<WritesOnceOutcome | undefined>;
}

/** The columns of a unique or of the key by their names in any order; undefined if there is none of them. */
export function uniqueOf({ key, unique }: Relation, names: readonly string[]): readonly string[] | undefined {
  return [key, ...unique].find(
    (columns) => columns.length === names.length && columns.every((column) => names.includes(column)),
  );
}

/** How rows are upserted. */
export interface UpsertRule {
  readonly on: readonly string[];
  readonly resolution: 'merge' | 'ignore';
}

/** The outcome of a write to one row. */
export type RowOutcome =
  | { readonly is: 'changed'; readonly row: StoredRow }
  | { readonly is: 'created'; readonly row: StoredRow }
  | { readonly is: 'removed' }
  /** The row does not meet the condition; nothing was written. */
  | { readonly is: 'refused' }
  | { readonly is: 'missing' };

/** Does one write in a transaction of its own. */
export async function writeOne(
  transactions: Pick<RowTransactions, 'write'>,
  write: RowWrite,
): Promise<RowOutcome> {
  try {
    const [outcome] = await transactions.write([write]);
    if (outcome?.is === 'created' || outcome?.is === 'changed') return { is: outcome.is, row: outcome.row };
    if (outcome?.is !== 'removed') throw new Error('a write returned no row');
    return { is: 'removed' };
  } catch (error) {
    if (!(error instanceof WriteRefusedError)) throw error;
    const { reason } = error;
    if (reason === 'unfit' || reason === 'large') throw error;
    return { is: reason };
  }
}
