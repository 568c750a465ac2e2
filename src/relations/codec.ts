import type { Value } from './relation.ts';

/** A value that is not null. */
export type Present = NonNullable<Value>;

/**
 * A value that a client wrote, or why the column refuses it. The problem completes a sentence that begins
 * with the name of the column: `must be a whole number`.
 */
export type Parsed = { readonly value: Present } | { readonly problem: string };

/** A value as the drivers of both engines bind it. */
export type Bound = null | number | bigint | string | Uint8Array;

/** A type of columns in one engine. Expressions of null are null. */
export interface Storage {
  /** The type of the column, and of a cast. On PostgreSQL columns of `text` are declared COLLATE "C". */
  readonly type: string;
  bind(value: Value): Bound;
  /** The expression whose result `read` reads. */
  select(column: string): string;
  read(stored: unknown): Value;
  /** The expression that becomes the member of a JSON object, in json_object and json_build_object. */
  json(column: string): string;
  /** The expression by which values are compared and sorted; columns and parameters alike. */
  compared(expression: string): string;
  /** The expression that a prefix is compared with, if another than that of `compared`. */
  bytes?(expression: string): string;
  /** The whole number that sums add, if the column has another. */
  summed?(column: string): string;
}

/** A type of columns between clients and engines. Null is a matter of the column, except in storage. */
export interface Codec {
  /** Reads a value of a parsed JSON document. */
  parse(value: unknown): Parsed;
  /** Reads a text: a query parameter, a field of CSV or a part of a key in a path. */
  parseText(text: string): Parsed;
  /** The value as JSON. */
  format(value: Present): string;
  /** The value as text, which `parseText` reads. */
  formatText(value: Present): string;
  /** The order of the values, in which both engines sort too. */
  compare(a: Present, b: Present): number;
  readonly sqlite: Storage;
  readonly postgres: Storage;
}

export const problem = (text: string): Parsed => ({ problem: text });
export const same = (expression: string) => expression;

interface StorageParts {
  readonly type: string;
  readonly bind?: (value: Present) => Bound;
  readonly select?: (column: string) => string;
  readonly read?: (stored: Present) => Value;
  readonly json?: (column: string) => string;
  readonly compared?: (expression: string) => string;
}

/** A storage whose parts are identities unless they are given. */
export function storage({ type, bind, select, read, json, compared }: StorageParts): Storage {
  return {
    type,
    bind: (value) => (value === null || bind === undefined ? (value as Bound) : bind(value)),
    select: select ?? same,
    read: (stored) =>
      stored === null || stored === undefined ? null : (read ?? ((value: Value) => value))(stored as Present),
    json: json ?? same,
    compared: compared ?? same,
  };
}

/** The order of numbers, and of texts by their units. */
export const compareNumbers = (a: Present, b: Present) => Number(a > b) - Number(a < b);

/** A count with its noun. */
export const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
