import { folded } from '../../core/text.ts';
import type { Bound as BoundValue, Storage } from '../../relations/codec.ts';
import { codecOf } from '../../relations/codecs.ts';
import { type ColumnType, type Relation, USERS, type Value } from '../../relations/relation.ts';
import { EarlierValue, type Given } from '../../relations/rows/writes.ts';
import type { WriteCondition } from '../../relations/user.ts';
import { timely, timelyTable } from '../statement-time.ts';

/** A time that every version precedes. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** A value as it is bound to a statement; an earlier one takes its place when the statement runs. */
export type Bound = BoundValue | readonly unknown[] | EarlierValue;

/** A statement with its values. */
export interface BoundText {
  readonly text: string;
  readonly values: readonly Bound[];
}

/** A further condition of a statement, whose parameters it numbers from `nth` on. */
export type Addition = (nth: number) => BoundText;

/** A statement with a further condition before its RETURNING, if it has one. */
function withAddition(
  text: string,
  values: readonly Bound[],
  also: Addition | undefined,
  rest = '',
): BoundText {
  if (also === undefined) return { text: `${text}${rest}`, values };
  const added = also(values.length + 1);
  return { text: `${text} AND ${added.text}${rest}`, values: [...values, ...added.values] };
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
   * the engine ends long statements without it. `isTable` says that they may be any number of rows of a table.
   */
  timely(alias: string, column: string, isTable: boolean): string;
  /** The size of a value in bytes; 0 for null. */
  size(column: string, type: ColumnType): string;
  /** The constant false. */
  readonly no: string;
  /** How a unique index has a column whose texts are compared without the case of A to Z. */
  folded(column: string): string;
  greatest(...values: readonly string[]): string;
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
  timely: (alias, column, isTable) => `${(isTable ? timelyTable : timely)(alias, name(column))} AND `,
  size: (column) => `ifnull(octet_length(${column}), 0)`,
  overriding: '',
  no: '0',
  folded: (column) => `${column} COLLATE NOCASE`,
  greatest: (...values) => `max(${values.join(', ')})`,
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
  sums: (column) => [`sum(${column})::text`],
};

/** Joins parts, at most `size` at a time; SQLite bounds the depth of an expression. */
/** The most arguments that a function takes on both engines. */
const MAX_ARGUMENTS = 100;

/** Joins texts and whole numbers, none of them null, on both engines. Each || would copy the text so far. */
export function joined(parts: readonly string[]): string {
  if (parts.length <= MAX_ARGUMENTS) return `concat(${parts.join(', ')})`;
  const starts = Array.from({ length: Math.ceil(parts.length / MAX_ARGUMENTS) }, (_, i) => i * MAX_ARGUMENTS);
  return joined(starts.map((start) => joined(parts.slice(start, start + MAX_ARGUMENTS))));
}

function wholeTextPage({ text, keys, from, order, limit }: TextPage): string {
  return `SELECT ${[text, ...keys].join(', ')} FROM ${from} ORDER BY ${order} ${limit}`;
}

/** What an insert does with a row that has the same values of a unique or of the key. */
interface OnConflict {
  readonly columns: readonly string[];
  /** The columns that change; undefined if nothing does. */
  readonly merged: readonly number[] | undefined;
  /** Whether only a row with the same key changes. */
  readonly sameKey: boolean;
  /** A condition on the row that is there, without which it does not change. */
  readonly also?: Addition | undefined;
}

/** Builds the statements on the rows of a relation. Texts that depend on the relation alone are built once. */
export class RowSql {
  readonly relation: Relation;
  readonly dialect: RowDialect;
  readonly table: string;
  /** The quoted name of the column with the version. */
  readonly version: string;
  /** The expressions that read a row and its version. */
  readonly selected: string;
  /** The index of the serial column; -1 without one. */
  readonly #serial: number;
  readonly #types: ReadonlyMap<string, ColumnType>;
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #keyTypes: readonly ColumnType[];
  readonly #storages: readonly Storage[];
  readonly #readText: string;
  readonly #removeText: string;

  constructor(relation: Relation, dialect: RowDialect) {
    const { columns, key } = relation;
    this.relation = relation;
    this.dialect = dialect;
    this.table = name(relation.table);
    this.version = relation.name === USERS ? '"version"' : '"_version"';
    this.#storages = columns.map(({ type }) => dialect.storage(type));
    this.#serial = columns.findIndex(({ type }) => type.kind === 'serial');
    this.#types = new Map(columns.map((column) => [column.name, column.type]));
    this.#indexes = new Map(columns.map((column, i) => [column.name, i]));
    this.#keyTypes = key.map((column) => this.typeOf(column));
    this.selected = [
      ...columns.map((column) => dialect.storage(column.type).select(name(column.name))),
      this.version,
    ].join(', ');
    this.#readText = `SELECT ${this.selected} FROM ${this.table} WHERE ${this.#isKey(1)}`;
    this.#removeText = `DELETE FROM ${this.table} WHERE ${this.#isMeant()}`;
  }

  typeOf(column: string): ColumnType {
    const type = this.#types.get(column);
    if (type === undefined) throw new Error(`${this.relation.name} has no column ${column}`);
    return type;
  }

  /** The index of a column. */
  indexOf(column: string): number {
    const index = this.#indexes.get(column);
    if (index === undefined) throw new Error(`${this.relation.name} has no column ${column}`);
    return index;
  }

  /** The values of the condition of an update or a removal. */
  conditionValues(condition: WriteCondition | undefined): readonly Bound[] {
    return [this.dialect.list(condition?.versions), condition?.before ?? NEVER];
  }

  /** The placeholder of the nth value, counting from 1. */
  parameter(nth: number, type: ColumnType): string {
    return this.dialect.parameter(nth, this.dialect.storage(type).type);
  }

  /** A value as it is bound. */
  bind(value: Given | undefined, type: ColumnType): Bound {
    if (value instanceof EarlierValue) return value;
    return this.dialect.storage(type).bind(value ?? null);
  }

  bindAt(column: number, value: Given | undefined): Bound {
    if (value instanceof EarlierValue) return value;
    return this.storageAt(column).bind(value ?? null);
  }

  parameterAt(nth: number, column: number): string {
    return this.dialect.parameter(nth, this.storageAt(column).type);
  }

  storageAt(column: number): Storage {
    const storage = this.#storages[column];
    if (storage === undefined) throw new Error(`${this.relation.name} has no column ${column}`);
    return storage;
  }

  /** The expression that reads a column of the table with an alias. */
  selectedAt(column: number, alias: string): string {
    return this.storageAt(column).select(`${alias}.${name(this.relation.columns[column]?.name ?? '')}`);
  }

  /** Whether the engine can assign a column. */
  get hasSerial(): boolean {
    return this.#serial !== -1;
  }

  get serialName(): string | undefined {
    return this.relation.columns[this.#serial]?.name;
  }

  /** Whether a row has the number that the engine could assign. */
  givesSerial(values: readonly Given[]): boolean {
    return this.hasSerial && values[this.#serial] !== null;
  }

  /** The row of what `selected` reads. */
  row(stored: readonly unknown[]): { readonly values: readonly Value[]; readonly version: number } {
    const { columns } = this.relation;
    const values = this.#storages.map(({ read }, i) => read(stored[i]));
    return { values, version: Number(stored[columns.length]) };
  }

  read(key: readonly Given[], also?: Addition): BoundText {
    return withAddition(this.#readText, this.#keyValues(key), also);
  }

  /** The indexes of the columns that an insert of this row names. */
  inserted(values: readonly Given[]): readonly number[] {
    const { columns } = this.relation;
    return values.flatMap((value, i) =>
      (i === this.#serial && value === null) || columns[i]?.computed !== undefined ? [] : [i],
    );
  }

  /** Stores a row, or does what `conflict` says with the one that is there; returns the stored row. */
  insert(row: readonly Given[], version: number, conflict?: OnConflict): BoundText {
    const { dialect, table } = this;
    const inserted = this.inserted(row);
    const names = [...inserted.map((i) => this.nameAt(i)), this.version];
    const values: Bound[] = [];
    const parameters = inserted.map((i) => this.parameterAt(values.push(this.bindAt(i, row[i])), i));
    parameters.push(dialect.parameter(values.push(version), 'bigint'));
    const otherwise = conflict === undefined ? '' : this.#onConflict(conflict);
    const text = `INSERT INTO ${table} (${names.join(', ')}) ${dialect.overriding} VALUES (${parameters.join(', ')})${otherwise}`;
    return withAddition(text, values, conflict?.also, ` RETURNING ${this.selected}`);
  }

  /** A changed row gets a version above the given one, which tells it from a new row. */
  #onConflict({ columns, merged, sameKey, also }: OnConflict): string {
    const { dialect, table, version } = this;
    const target = columns.map((column) => {
      const type = this.typeOf(column);
      return type.kind === 'text' && type.fold ? dialect.folded(name(column)) : name(column);
    });
    const where = ` ON CONFLICT (${target.join(', ')}) DO`;
    if (merged === undefined) return `${where} NOTHING`;
    const sets = merged.map((i) => `${this.nameAt(i)} = excluded.${this.nameAt(i)}`);
    sets.push(`${version} = ${dialect.greatest(`${table}.${version}`, `excluded.${version}`)} + 1`);
    const same = this.relation.key.map((column) => `${table}.${name(column)} = excluded.${name(column)}`);
    const when = sameKey ? same.join(' AND ') : '1 = 1';
    return `${where} UPDATE SET ${sets.join(', ')}${sameKey || also !== undefined ? ` WHERE ${when}` : ''}`;
  }

  /** The row with these values of a unique; undefined if one of the values is null. */
  find(columns: readonly string[], values: readonly Given[], also?: Addition): BoundText | undefined {
    const found = this.#equal(columns, values);
    return (
      found &&
      withAddition(`SELECT ${this.selected} FROM ${this.table} WHERE ${found.text}`, found.values, also)
    );
  }

  /** The quoted name of a column. */
  nameAt(column: number): string {
    return name(this.relation.columns[column]?.name ?? '');
  }

  /** Stores a row if this write has taken an idempotency key. */
  insertForKey(key: string, row: readonly Value[], version: number): BoundText {
    const { columns } = this.relation;
    const inserted = this.inserted(row);
    const names = [...inserted.map((i) => name(columns[i]?.name ?? '')), this.version];
    const values: Bound[] = [key];
    const parameters = inserted.map((i) => this.parameterAt(values.push(this.bindAt(i, row[i])), i));
    parameters.push(this.dialect.parameter(values.push(version), 'bigint'));
    const taken = `idempotency_keys WHERE key = ${this.dialect.parameter(1, 'text')} AND user_id = 0`;
    return {
      text: `INSERT INTO ${this.table} (${names.join(', ')}) ${this.dialect.overriding} SELECT ${parameters.join(', ')} FROM ${taken}`,
      values,
    };
  }

  /** Records that a row was stored, if this write has taken the key; returns the outcome that is kept. */
  noteForKey(key: string, now: number, serial: string): BoundText {
    const kept = `key = ${this.dialect.parameter(1, 'text')} AND expires_at > ${this.dialect.parameter(2, 'bigint')}`;
    return {
      text: `UPDATE idempotency_keys SET user_id = CASE WHEN user_id > 0 THEN user_id ELSE ${serial} END WHERE ${kept} RETURNING fingerprint, user_id`,
      values: [key, now],
    };
  }

  /** Removes a row that meets a condition; returns a row if it did. */
  remove(key: readonly Given[], condition: readonly Bound[], also?: Addition): BoundText {
    const values = [...this.#keyValues(key), ...condition];
    return withAddition(this.#removeText, values, also, ` RETURNING ${this.version}`);
  }

  /** Changes columns of a row that meets a condition; returns the row. */
  update(
    key: readonly Given[],
    patch: Iterable<readonly [index: number, value: Given]>,
    condition: readonly Bound[],
    version: number,
    also?: Addition,
  ): BoundText {
    const { columns } = this.relation;
    const values: Bound[] = [...this.#keyValues(key), ...condition, version];
    const now = this.dialect.parameter(values.length, 'bigint');
    const sets = Array.from(patch, ([i, value]) => {
      const column = columns[i];
      if (column === undefined) throw new Error(`${this.relation.name} has no column ${i}`);
      const nth = values.push(this.bind(value, column.type));
      return `${name(column.name)} = ${this.parameter(nth, column.type)}`;
    });
    sets.push(`${this.version} = ${this.dialect.greatest(`${this.version} + 1`, now)}`);
    const text = `UPDATE ${this.table} SET ${sets.join(', ')} WHERE ${this.#isMeant()}`;
    return withAddition(text, values, also, ` RETURNING ${this.selected}`);
  }

  /**
   * Whether another row has these values of columns; `except` has the values of the row itself in the columns
   * `by`, the key by default. Undefined if one
   * of the values is null, which no other row equals.
   */
  taken(
    columns: readonly string[],
    values: readonly Given[],
    except: readonly Given[] | undefined,
    by = this.relation.key,
  ): BoundText | undefined {
    const found = this.#equal(columns, values);
    const own = except && this.#equal(by, except, columns.length + 1);
    if (found === undefined || own === undefined) return found && exists(this.table, found);
    return exists(this.table, {
      text: `${found.text} AND NOT (${own.text})`,
      values: [...found.values, ...own.values],
    });
  }

  /** Whether a row has these values of columns; undefined if one of the values is null. */
  has(columns: readonly string[], values: readonly Given[], also?: Addition): BoundText | undefined {
    const found = this.#equal(columns, values);
    return found && exists(this.table, withAddition(found.text, found.values, also));
  }

  /** Whether the row with a key meets a condition. */
  meets(key: readonly Given[], also: Addition): BoundText {
    const { text, values } = withAddition(this.#isKey(1), this.#keyValues(key), also);
    return exists(this.table, { text, values });
  }

  /** The condition that columns have values, which are bound from the nth on; undefined with a null. */
  #equal(columns: readonly string[], given: readonly Given[], nth = 1): BoundText | undefined {
    if (given.includes(null)) return undefined;
    const { dialect } = this;
    const conditions = columns.map((column, i) => {
      const type = this.typeOf(column);
      const { compared } = dialect.storage(type);
      return `${compared(name(column))} = ${compared(this.parameter(nth + i, type))}`;
    });
    const values = columns.map((column, i) => this.bind(given[i], this.typeOf(column)));
    return { text: conditions.join(' AND '), values };
  }

  #keyValues(key: readonly Given[]): Bound[] {
    return this.#keyTypes.map((type, i) => this.bind(key[i], type));
  }

  /** The condition on the key, whose values are bound from the nth on. */
  #isKey(nth: number): string {
    const { key } = this.relation;
    return key
      .map((column, i) => `${name(column)} = ${this.parameter(nth + i, this.typeOf(column))}`)
      .join(' AND ');
  }

  /** The condition on the key and, behind it, on the version. */
  #isMeant(): string {
    const next = this.relation.key.length + 1;
    const { dialect, version } = this;
    return `${this.#isKey(1)} AND ${dialect.isInOrNull(version, next)} AND ${version} < ${dialect.parameter(next + 1, 'bigint')}`;
  }
}

function exists(table: string, { text, values }: BoundText): BoundText {
  return { text: `SELECT 1 FROM ${table} WHERE ${text} LIMIT 1`, values };
}
