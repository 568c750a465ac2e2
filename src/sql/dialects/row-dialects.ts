import { folded } from '../../core/text.ts';
import type { Bound as BoundValue, Storage } from '../../relations/codec.ts';
import { codecOf } from '../../relations/codecs.ts';
import type { ColumnType } from '../../relations/relation.ts';
import type { EarlierValue } from '../../relations/rows/writes.ts';
import { ROW_DIGEST, timely, timelyTable } from '../statement-time.ts';

/** A value as it is bound to a statement; an earlier one takes its place when the statement runs. */
export type Bound = BoundValue | readonly unknown[] | EarlierValue;

/** A statement with its values. */
export interface BoundText {
  readonly text: string;
  readonly values: readonly Bound[];
}

/** The parts of a statement that reads rows as texts. */
interface TextPage {
  readonly text: string;
  readonly keys: readonly string[];
  readonly from: string;
  readonly order: string;
  readonly limit: string;
  /** About how many bytes the page may have; undefined if rows are so small that no number of them exceeds it much. */
  readonly maxBytes: number | undefined;
}

/** The words in which the statements on rows differ between the engines. */
export interface RowDialect {
  /** How the engine stores a type of columns. */
  storage(type: ColumnType): Storage;
  /** The placeholder of the nth value, counting from 1, as a value of a type of the engine. */
  parameter(nth: number, type: string): string;
  /** The condition that a number is in the nth value, a list, or that the list is null. */
  isInOrNull(column: string, nth: number): string;
  /** Binds a list of numbers for `isInOrNull`. */
  list(numbers: readonly number[] | undefined): Bound;
  /** Binds a list of values for `isIn`; `folds` says whether texts are compared without the case of A to Z. */
  listOf(values: readonly BoundValue[], folds: boolean): Bound;
  /** The condition that an expression has a value of the nth value, a list. */
  isIn(compared: string, nth: number, type: string): string;
  /** The condition that a text contains another; `folds` says that the other is in lower case. */
  contains(text: string, part: string, folds: boolean): string;
  /**
   * A table of given values: `nth` from 0, and a list of values for each of the columns `v0`, `v1`, ... Its text depends
   * on the types alone.
   */
  givenRows(types: readonly string[], columns: readonly (readonly Bound[])[]): BoundText;
  /** Reads texts, then keys, up to about a size. */
  textPage(page: TextPage): string;
  /** A text as a JSON string. */
  quoteJson(text: string): string;
  /** What an insert says that gives the number of a row. */
  readonly overriding: string;
  /** Whether a page costs less if a statement makes the JSON of its rows. */
  readonly packs: boolean;
  /** The aggregate of texts, with commas between. */
  joinedTexts(text: string): string;
  /** Whether the driver reads row by row, so that it may end a statement early. */
  readonly endsEarly: boolean;
  /**
   * The condition that a statement still has time, to be asked at each row of `alias`, of which `column` is one; empty if
   * the engine ends long statements without it. They may be few, or any number of rows of a table that Portico or another
   * program has made.
   */
  timely(alias: string, column: string, rows: 'few' | 'own' | 'existing'): string;
  /** The size of a value in bytes; 0 for null. */
  size(column: string, type: ColumnType): string;
  /** The constant false. */
  readonly no: string;
  /** How a unique index has a column whose texts are compared without the case of A to Z. */
  folded(column: string): string;
  greatest(...values: readonly string[]): string;
  /** The version of a row of a table without a column for it: a digest of values, or what the engine knows of the row. */
  rowVersion(columns: readonly string[], row: string, isDigest: boolean): string;
  /** The sum of whole numbers or decimals with all digits: one text, or the sums of the high and the low 32 bits. */
  sums(column: string): readonly string[];
}

/** Quotes the name of a table or column. */
export function name(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

/** A bound value as JSON: whole numbers of 64 bits with all digits, bytes as hexadecimal digits. */
function jsonOf(value: Bound): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return value instanceof Uint8Array ? `"${Buffer.from(value).toString('hex')}"` : String(value);
}

export const SQLITE_ROWS: RowDialect = {
  storage: (type) => codecOf(type).sqlite,
  parameter: (nth) => `?${nth}`,
  isInOrNull: (column, nth) => `(?${nth} IS NULL OR ${column} IN (SELECT value FROM json_each(?${nth})))`,
  list: (numbers) => (numbers === undefined ? null : JSON.stringify(numbers)),
  listOf: (values) => `[${values.map(jsonOf).join()}]`,
  isIn: (compared, nth) => `${compared} IN (SELECT value FROM json_each(?${nth}))`,
  contains: (text, part, folds) => `instr(${folds ? `lower(${text})` : text}, ${part}) > 0`,
  givenRows(types, columns) {
    // JSON has no bytes.
    const names = types.map((type, i) => {
      const value = types.length === 1 ? 'value' : `value ->> ${i}`;
      return `${type === 'BLOB' ? `unhex(${value})` : value} AS v${i}`;
    });
    const rows = (columns[0] ?? []).map((_, nth) => {
      const values = columns.map((column) => jsonOf(column[nth] ?? null));
      return values.length === 1 ? values[0] : `[${values.join()}]`;
    });
    return {
      text: `(SELECT key AS nth, ${names.join(', ')} FROM json_each(?1))`,
      values: [`[${rows.join()}]`],
    };
  },
  // Its rows are read one by one until their texts are large enough.
  textPage: wholeTextPage,
  quoteJson: (text) => `json_quote(${text})`,
  packs: false,
  joinedTexts: (text) => `group_concat(${text})`,
  endsEarly: true,
  timely(alias, column, rows) {
    const quoted = name(column);
    return `${rows === 'few' ? timely(alias, quoted) : timelyTable(alias, quoted, rows === 'own')} AND `;
  },
  size: (column) => `ifnull(octet_length(${column}), 0)`,
  overriding: '',
  no: '0',
  folded: (column) => `${column} COLLATE NOCASE`,
  greatest: (...values) => `max(${values.join(', ')})`,
  rowVersion: (columns) => inGroups(columns, (group) => `${ROW_DIGEST}(${group.join(', ')})`),
  // A sum of numbers of 64 bits could overflow.
  sums: (column) => [`sum(${column} >> 32)`, `sum(${column} & 4294967295)`],
};

export const POSTGRES_ROWS: RowDialect = {
  storage: (type) => codecOf(type).postgres,
  parameter: (nth, type) => `$${nth}::${type}`,
  isInOrNull: (column, nth) => `($${nth}::bigint[] IS NULL OR ${column} = ANY ($${nth}::bigint[]))`,
  list: (numbers) => numbers ?? null,
  listOf: (values, folds) => (folds ? values.map((value) => folded(String(value))) : values),
  isIn: (compared, nth, type) => `${compared} = ANY ($${nth}::${type}[])`,
  contains: (text, part, folds) => `strpos(${folds ? `lower(${text} COLLATE "C")` : text}, ${part}) > 0`,
  givenRows(types, columns) {
    const lists = types.map((type, i) => `$${i + 1}::${type}[]`);
    const names = types.map((_, i) => `v${i}`).join(', ');
    const from = `unnest(${lists.join(', ')}) WITH ORDINALITY AS list (${names}, place)`;
    return { text: `(SELECT place - 1 AS nth, ${names} FROM ${from})`, values: columns };
  },
  textPage(page) {
    const { text, keys, from, order, limit, maxBytes } = page;
    // The sizes cost a third of the statement.
    if (maxBytes === undefined) return wholeTextPage(page);
    const names = keys.map((_, i) => `k${i}`);
    const looked = `
      SELECT ${text} AS text, ${keys.map((key, i) => `${key} AS k${i}`).join(', ')}, row_number() OVER (ORDER BY ${order}) AS place
      FROM ${from} ORDER BY ${order} ${limit}`;
    return `
      SELECT ${['text', ...names].join(', ')} FROM (
        SELECT *, coalesce(sum(octet_length(text)) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
        FROM (${looked}) AS looked) AS page
      WHERE before < ${maxBytes} ORDER BY place`;
  },
  quoteJson: (text) => `to_json(${text})::text`,
  packs: true,
  joinedTexts: (text) => `string_agg(${text}, ',')`,
  endsEarly: false,
  timely: () => '',
  size: (column, { kind }) => `coalesce(octet_length(${column}${kind === 'json' ? '::text' : ''}), 0)`,
  overriding: 'OVERRIDING SYSTEM VALUE',
  no: 'false',
  folded: (column) => `lower(${column} COLLATE "C")`,
  greatest: (...values) => `greatest(${values.join(', ')})`,
  // A digest of as many bits as a double holds.
  rowVersion: (columns, row, isDigest) =>
    isDigest
      ? `(hashtextextended(ROW(${columns.join(', ')})::text, 0) & 4503599627370495)`
      : `${row}xmin::text::bigint`,
  sums: (column) => [`sum(${column})::text`],
};

/** The most arguments that a function takes on both engines. */
const MAX_ARGUMENTS = 100;

/** Calls a function with any number of arguments, whose results are its arguments again. */
function inGroups(parts: readonly string[], call: (parts: readonly string[]) => string): string {
  if (parts.length <= MAX_ARGUMENTS) return call(parts);
  const starts = Array.from({ length: Math.ceil(parts.length / MAX_ARGUMENTS) }, (_, i) => i * MAX_ARGUMENTS);
  return inGroups(
    starts.map((start) => inGroups(parts.slice(start, start + MAX_ARGUMENTS), call)),
    call,
  );
}

/** Joins texts and whole numbers, none of them null, on both engines. Each || would copy the text so far. */
export function joined(parts: readonly string[]): string {
  return inGroups(parts, (group) => `concat(${group.join(', ')})`);
}

function wholeTextPage({ text, keys, from, order, limit }: TextPage): string {
  return `SELECT ${[text, ...keys].join(', ')} FROM ${from} ORDER BY ${order} ${limit}`;
}
