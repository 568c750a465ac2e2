import type { Storage } from '../../relations/codec.ts';
import { type ColumnType, type Relation, USERS, type Value } from '../../relations/relation.ts';
import { EarlierValue, type Given } from '../../relations/rows/writes.ts';
import type { WriteCondition } from '../../relations/user.ts';
import { type Bound, type BoundText, name, type RowDialect } from '../dialects/row-dialects.ts';

/** A time that every version precedes. */
const NEVER = Number.MAX_SAFE_INTEGER;

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

/** The table of a relation, as statements name it. */
export function tableOf({ table, existing }: Relation): string {
  return existing?.schema === undefined ? name(table) : `${name(existing.schema)}.${name(table)}`;
}

/** All columns of an alias, with what the engine knows of a row if that is its version. */
export function wholeRow({ existing }: Relation, alias: string): string {
  return existing === undefined || existing.hasDigest ? `${alias}.*` : `${alias}.*, ${alias}.xmin`;
}

/** The expression of the version of a row; `alias` is that of its table. */
export function versionOf(relation: Relation, dialect: RowDialect, alias = ''): string {
  const row = alias === '' ? '' : `${alias}.`;
  if (relation.name === USERS) return `${row}"version"`;
  if (relation.existing === undefined) return `${row}"_version"`;
  const columns = relation.columns.map((column) => `${row}${name(column.name)}`);
  return dialect.rowVersion(columns, row, relation.existing.hasDigest);
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
  /** The expression of the version of a row. */
  readonly version: string;
  /** Whether the table has a column for versions, which writes set. */
  readonly keepsVersion: boolean;
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
    this.table = tableOf(relation);
    this.version = versionOf(relation, dialect);
    this.keepsVersion = relation.existing === undefined;
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
    return values.flatMap((value, i) => {
      const { computed, isGenerated, default: standard } = columns[i] ?? {};
      const isLeft = i === this.#serial || standard?.kind === 'database';
      return (isLeft && value === null) || computed !== undefined || isGenerated ? [] : [i];
    });
  }

  /** Stores a row, or does what `conflict` says with the one that is there; returns the stored row. */
  insert(row: readonly Given[], version: number, conflict?: OnConflict): BoundText {
    const { dialect, table } = this;
    const inserted = this.inserted(row);
    const names = this.written(inserted);
    const values: Bound[] = [];
    const parameters = inserted.map((i) => this.parameterAt(values.push(this.bindAt(i, row[i])), i));
    if (this.keepsVersion) parameters.push(dialect.parameter(values.push(version), 'bigint'));
    const otherwise = conflict === undefined ? '' : this.#onConflict(conflict);
    const text = `INSERT INTO ${table} ${valuesClause(names, parameters, dialect)}${otherwise}`;
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
    if (this.keepsVersion)
      sets.push(`${version} = ${dialect.greatest(`${table}.${version}`, `excluded.${version}`)} + 1`);
    else if (sets.length === 0) sets.push(this.#sameKey(`${table}.`));
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

  /** The quoted names of the columns that an insert writes: those given, and the version if there is a column for it. */
  written(inserted: readonly number[]): readonly string[] {
    return [...inserted.map((i) => this.nameAt(i)), ...(this.keepsVersion ? [this.version] : [])];
  }

  /** Sets a column to the value that it has, since an update sets at least one. */
  #sameKey(table: string): string {
    const first = name(this.relation.key[0] ?? '');
    return `${first} = ${table}${first}`;
  }

  /** The quoted name of a column. */
  nameAt(column: number): string {
    return name(this.relation.columns[column]?.name ?? '');
  }

  /** Stores a row if this write has taken an idempotency key. */
  insertForKey(key: string, row: readonly Value[], version: number): BoundText {
    const inserted = this.inserted(row);
    const names = this.written(inserted);
    const values: Bound[] = [key];
    const parameters = inserted.map((i) => this.parameterAt(values.push(this.bindAt(i, row[i])), i));
    if (this.keepsVersion) parameters.push(this.dialect.parameter(values.push(version), 'bigint'));
    const taken = `idempotency_keys WHERE key = ${this.dialect.parameter(1, 'text')} AND user_id = 0`;
    return {
      text: `INSERT INTO ${this.table} (${names.join(', ')}) ${this.dialect.overriding} SELECT ${parameters.join(', ')} FROM ${taken}`,
      values,
    };
  }

  /** Records that a row was stored, if this write has taken the key; returns the outcome that is kept. */
  noteForKey(key: string, now: number, serial: string): BoundText {
    const kept = `key = ${this.dialect.parameter(1, 'text')} AND expires_at + 0 > ${this.dialect.parameter(2, 'bigint')}`;
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
    const values: Bound[] = [...this.#keyValues(key), ...condition];
    const sets = Array.from(patch, ([i, value]) => {
      const column = columns[i];
      if (column === undefined) throw new Error(`${this.relation.name} has no column ${i}`);
      const nth = values.push(this.bind(value, column.type));
      return `${name(column.name)} = ${this.parameter(nth, column.type)}`;
    });
    if (this.keepsVersion) {
      const now = this.dialect.parameter(values.push(version), 'bigint');
      sets.push(`${this.version} = ${this.dialect.greatest(`${this.version} + 1`, now)}`);
    } else if (sets.length === 0) sets.push(this.#sameKey(''));
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
    // Only a column for versions has times.
    const limit = dialect.parameter(next + 1, 'bigint');
    const isBefore = this.keepsVersion ? `${version} < ${limit}` : `${limit} IS NOT NULL`;
    return `${this.#isKey(1)} AND ${dialect.isInOrNull(version, next)} AND ${isBefore}`;
  }
}

function valuesClause(
  names: readonly string[],
  parameters: readonly string[],
  { overriding }: RowDialect,
): string {
  if (names.length === 0) return 'DEFAULT VALUES';
  return `(${names.join(', ')}) ${overriding} VALUES (${parameters.join(', ')})`;
}

function exists(table: string, { text, values }: BoundText): BoundText {
  return { text: `SELECT 1 FROM ${table} WHERE ${text} LIMIT 1`, values };
}
