import type { TextField, UserField } from '../../users/user-list.ts';

/** A value that is bound to a statement. */
export type Bound = string | number | readonly (string | number)[];

/** Adds a value to a statement; returns what stands for it in the text. */
export type Bind = (value: Bound) => string;

/** How an engine writes the parts of a query for users. */
export interface ListDialect {
  /** What stands for the nth value, from 1 on. */
  placeholder(nth: number, value: Bound): string;
  /** A field as it is compared, sorted and indexed: texts without regard to the case of A to Z. */
  key(field: UserField): string;
  /** Whether a key is one of several values, which are folded. */
  isOneOf(key: string, values: readonly (string | number)[], bind: Bind): string;
  /** Whether one of the fields of a row contains a folded text. */
  contains(fields: readonly TextField[], text: string, bind: Bind): string;
  /**
   * The same, found by an index; the text has three characters or more. Where the index is a table of its own, `bounds`
   * gives further conditions on its `id`, its order and its limit.
   */
  containing(fields: readonly TextField[], text: string, bind: Bind, bounds: () => string): string;
  /** What names the state of all users (see DatabaseUserStore). */
  readonly state: string;
  /** A JSON object with these fields of the row. */
  json(fields: readonly UserField[]): string;
}
