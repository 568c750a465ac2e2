import { createHash } from 'node:crypto';
import { codecOf } from '../../relations/codecs.ts';
import { expressionSql } from '../../relations/hooks/computed.ts';
import {
  type ColumnType,
  type Column as DeclaredColumnOf,
  type Default,
  type Relation,
  USER_COLUMNS,
  USERS,
} from '../../relations/relation.ts';

export type Engine = 'sqlite' | 'postgres';

/** The column with the version of a row, as users have one. */
export const VERSION_COLUMN = '_version';

/** A column of a table. */
export interface Column {
  readonly name: string;
  /** The type as the codec of the engine names it. */
  readonly type: string;
  /** What the values mean, since one type of the engine stores several types of columns: `decimal2`. */
  readonly kind: string;
  readonly nullable: boolean;
  /** A constant in the engine's canonical form, or any expression of a table that others have made. */
  readonly default: string | undefined;
  /** Who numbers the rows; undefined for all but serials. SQLite does not distinguish the two. */
  readonly identity: 'always' | 'by default' | undefined;
  /** The expression that the engine computes the values from, as it was declared; undefined for other columns. */
  readonly computed?: string | undefined;
}

/** The condition on the values of one column. Its name ends with the kind and a digest of the condition. */
export interface Check {
  readonly name: string;
  readonly column: string;
  /** The kind and the digest; two checks of one column with the same tag are the same. */
  readonly tag: string;
  /** The condition as the engine writes it. */
  readonly condition: string;
}

export interface Index {
  readonly name: string;
  readonly isUnique: boolean;
  readonly columns: readonly { readonly name: string; readonly fold: boolean }[];
}

export interface ForeignKey {
  readonly name: string;
  readonly columns: readonly string[];
  readonly table: string;
  readonly targetColumns: readonly string[];
  readonly onDelete: 'restrict' | 'cascade' | 'null';
}

/** A table, in one form for declarations and the catalogues of both engines. */
export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  readonly key: readonly string[];
  /** The name of the primary key; undefined on SQLite, which has none. */
  readonly keyName: string | undefined;
  readonly checks: readonly Check[];
  readonly indexes: readonly Index[];
  readonly foreignKeys: readonly ForeignKey[];
  /** The names of the triggers that record changes. */
  readonly triggers: readonly string[];
}

export interface DeclaredColumn extends Column {
  readonly was: string | undefined;
  /** The expression that rows get which exist before the column; undefined if there is none. */
  readonly fill: string | undefined;
}

export interface DeclaredCheck extends Check {
  /** The condition on an expression. The first quoted name of the condition on the column is the column. */
  on(expression: string): string;
}

export interface DeclaredTable extends Omit<Table, 'triggers'> {
  readonly was: string | undefined;
  /** Whether it has more columns and indexes, which stay as they are: the table of users. */
  readonly isPartial: boolean;
  /** The relation, if its changes are recorded. */
  readonly recorded: Relation | undefined;
  readonly columns: readonly DeclaredColumn[];
  readonly checks: readonly DeclaredCheck[];
}

/** The tables of relations on an engine. */
export function declaredTables(engine: Engine, relations: readonly Relation[]): readonly DeclaredTable[] {
  const tableOf = new Map(relations.map(({ name, table }) => [name, table]));
  // Nothing changes the tables of other programs.
  const own = relations.filter(({ existing }) => existing === undefined);
  return own.map((relation): DeclaredTable => {
    const { table, was, key } = relation;
    const isPartial = relation.name === USERS;
    const columns = isPartial ? addedColumns(relation) : relation.columns;
    const version = isPartial ? [] : [VERSION[engine]];
    return {
      name: table,
      was,
      isPartial,
      recorded: relation.changes ? relation : undefined,
      columns: [...columns.map((column) => declaredColumn(engine, relation, column)), ...version],
      key,
      keyName: engine === 'sqlite' ? undefined : objectName(table, 'key', []),
      checks: columns.map((column) => checkOf(engine, table, column)).filter((check) => check !== undefined),
      indexes: indexesOf(engine, relation),
      foreignKeys: relation.references.map(({ name, to, columns, targetColumns, onDelete }) => ({
        name: objectName(table, 'reference', [name]),
        columns,
        table: tableOf.get(to) ?? to,
        targetColumns,
        onDelete,
      })),
    };
  });
}

/** The columns of users that are declared. */
function addedColumns({ columns }: Relation): Relation['columns'] {
  return columns.filter(({ name }) => !USER_COLUMNS.includes(name));
}

const USERS_VERSION = 'version';

/** A partial table with all that a catalogue has besides; any other table as it is. */
export function completed(table: DeclaredTable, current: Table | undefined): DeclaredTable {
  if (!table.isPartial || current === undefined) return table;
  const isAdded = (name: string) => table.columns.some((column) => column.name === name);
  const isKept = (name: string) => [...USER_COLUMNS, USERS_VERSION].includes(name) && !isAdded(name);
  const kept = current.columns.filter(({ name }) => isKept(name));
  const indexes = current.indexes.filter(({ name }) => !isOwnName(table.name, name));
  return {
    ...table,
    isPartial: false,
    keyName: current.keyName,
    columns: [...kept.map((column) => ({ ...column, was: undefined, fill: undefined })), ...table.columns],
    indexes: [...indexes, ...table.indexes],
  };
}

function versionColumn(type: string): DeclaredColumn {
  return {
    name: VERSION_COLUMN,
    type,
    kind: 'bigint',
    nullable: false,
    default: '0',
    identity: undefined,
    was: undefined,
    fill: '0',
  };
}
const VERSION = { sqlite: versionColumn('INTEGER'), postgres: versionColumn('bigint') };

/** The longest name that PostgreSQL does not cut, in bytes. */
const LONGEST_NAME = 63;
const DIGEST_LENGTH = 8;

/** A short digest of a text. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_LENGTH);
}

/**
 * The name of a constraint or index: `books__unique__author_id_title`. A name of more than `longest` bytes
 * is cut and ends with a digest of the whole.
 */
export function objectName(
  table: string,
  kind: 'key' | 'check' | 'unique' | 'index' | 'reference',
  parts: readonly string[],
  longest = LONGEST_NAME,
): string {
  const name = [table, kind, ...(parts.length > 0 ? [parts.join('_')] : [])].join('__');
  if (Buffer.byteLength(name) <= longest) return name;
  // A digest has only ASCII, and so do names that relations may have; others are cut between characters.
  let cut = name;
  while (Buffer.byteLength(cut) > longest - DIGEST_LENGTH - 1) cut = cut.slice(0, -1);
  return `${cut.toWellFormed().replace(/\ufffd$/, '')}_${digest(name)}`;
}

const OWN_NAME = /__(?:key$|(?:check|unique|index|reference)__)/;
const CUT_NAME = /_[0-9a-f]{8}$/;

/** Whether Portico gave a constraint or an index of this table its name. */
export function isOwnName(table: string, name: string): boolean {
  return (name.startsWith(`${table}__`) && OWN_NAME.test(name)) || (name.length > 50 && CUT_NAME.test(name));
}

/** The tag of a check, from its name; undefined if Portico has not named it. */
export function tagOf(name: string): string | undefined {
  return /__([a-z]+\d*_[0-9a-f]{8})$/.exec(name)?.[1];
}

/** The kind in a tag: `decimal2_12ab34cd` is of a `decimal2`. */
function kindOfTag(tag: string): string {
  return tag.slice(0, -DIGEST_LENGTH - 1);
}

function kindOf(type: ColumnType): string {
  return type.kind === 'decimal' ? `decimal${type.scale}` : type.kind;
}

/** The kind in the tag of a check that stands for NOT NULL while a step is unfinished. */
const REQUIRED = 'required';
export const REQUIRED_TAG = `${REQUIRED}_${'0'.repeat(DIGEST_LENGTH)}`;

/** The kind of a column by its check; undefined without one. */
export function checkedKind(column: string, checks: readonly Check[]): string | undefined {
  const kinds = checks.filter((check) => check.column === column).map(({ tag }) => kindOfTag(tag));
  return kinds.find((kind) => kind !== REQUIRED);
}

/** Quotes the name of a table, column, constraint or index. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function textLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function declaredColumn(engine: Engine, relation: Relation, column: DeclaredColumnOf): DeclaredColumn {
  const { name, type, nullable, was, computed } = column;
  const isReference = relation.references.some(({ columns }) => columns.includes(name));
  const isSerial = type.kind === 'serial' && !isReference;
  const constant = isSerial ? undefined : constantOf(engine, column);
  return {
    name,
    type: codecOf(type)[engine].type,
    kind: kindOf(type),
    // No expression is null unless it may be, and the source may become nullable.
    nullable: nullable || computed !== undefined,
    default: constant,
    ...(computed !== undefined && { computed: expressionSql(engine, computed) }),
    identity: isSerial ? (type.open || engine === 'sqlite' ? 'by default' : 'always') : undefined,
    was,
    fill:
      constant === undefined
        ? fillOf(engine, column)
        : defaultLiteral(engine, codecOf(type)[engine].type, constant),
  };
}

/** A constant default as the engine's catalogue shows it. */
function constantOf(engine: Engine, { type, default: given }: DeclaredColumnOf): string | undefined {
  if (given?.kind !== 'value' || given.value === null) return undefined;
  const bound = codecOf(type)[engine].bind(given.value);
  if (engine === 'postgres')
    return bound instanceof Uint8Array ? `\\x${Buffer.from(bound).toString('hex')}` : String(bound);
  if (bound instanceof Uint8Array) return `X'${Buffer.from(bound).toString('hex').toUpperCase()}'`;
  return typeof bound === 'string' ? textLiteral(bound) : String(bound);
}

/** A canonical default in SQL. */
export function defaultLiteral(engine: Engine, type: string, constant: string): string {
  return engine === 'sqlite' ? constant : `${textLiteral(constant)}::${type}`;
}

const RANDOM_HEX = (bytes: number) => `lower(hex(randomblob(${bytes})))`;
const SQLITE_UUID = `${RANDOM_HEX(4)} || '-' || ${RANDOM_HEX(2)} || '-4' || substr(${RANDOM_HEX(2)}, 2) || '-a' || substr(${RANDOM_HEX(2)}, 2) || '-' || ${RANDOM_HEX(6)}`;

/** The values that existing rows get of a default that is computed for each new row. */
function fillOf(engine: Engine, { type, default: given }: DeclaredColumnOf): string | undefined {
  const kind: Default['kind'] | undefined = given?.kind;
  if (kind === 'v4' || kind === 'v7') return engine === 'sqlite' ? SQLITE_UUID : 'gen_random_uuid()';
  if (kind !== 'now') return undefined;
  if (type.kind === 'date')
    return engine === 'sqlite' ? `date('now')` : `(statement_timestamp() AT TIME ZONE 'UTC')::date`;
  return engine === 'sqlite' ? `CAST(unixepoch('subsec') * 1000 AS INTEGER)` : 'statement_timestamp()';
}

function checkOf(engine: Engine, table: string, { name, type }: DeclaredColumnOf): DeclaredCheck | undefined {
  const write = engine === 'sqlite' ? sqliteCondition : postgresCondition;
  // The digest does not depend on the name, so that a renamed column keeps its check.
  const general = write(type, '?');
  if (general === undefined) return undefined;
  const tag = `${kindOf(type)}_${digest(general)}`;
  const head = objectName(table, 'check', [name], LONGEST_NAME - tag.length - 2);
  const on = (expression: string) => String(write(type, expression));
  return { name: `${head}__${tag}`, column: name, tag, condition: on(identifier(name)), on };
}

/** Kinds whose conditions differ in their bounds or values alone. */
const BOUNDED = /^(?:text|bytes|json|integer|bigint|number|decimal\d+|enum)$/;

/** Whether a check allows all values that another one of the column allows. */
export function isWider(check: Check, other: Check): boolean {
  const kind = kindOfTag(check.tag);
  if (check.column !== other.column || kind !== kindOfTag(other.tag) || !BOUNDED.test(kind)) return false;
  const [wide, narrow] = [boundsOf(check.condition), boundsOf(other.condition)];
  if (kind === 'enum') return narrow.values.every((value) => wide.values.includes(value));
  const isBelow = (bound: string | undefined, than: string | undefined) =>
    bound === undefined || (than !== undefined && compareNumbers(bound, than) <= 0);
  return (
    isBelow(wide.min, narrow.min) &&
    (wide.max === undefined || (narrow.max !== undefined && isBelow(narrow.max, wide.max)))
  );
}

/** The bounds and texts in a condition, in the words of either engine. */
function boundsOf(condition: string) {
  // The lowest bigint is a difference of two numbers.
  const text = condition.replace('(-9223372036854775807 - 1)', '-9223372036854775808');
  const after = (words: RegExp) =>
    new RegExp(`${words.source} [('"]*(-?\\d[\\d.]*(?:e[+-]?\\d+)?)`, 'i').exec(text)?.[1];
  return {
    min: after(/(?:>=|BETWEEN)/),
    max: after(/(?:<=|BETWEEN \S+ AND)/),
    values: Array.from(text.matchAll(/'((?:[^']|'')*)'/g), ([, value]) => value),
  };
}

/** Compares decimals exactly, and numbers with an exponent as doubles. */
function compareNumbers(a: string, b: string): number {
  if (/e/i.test(a + b)) return Number(a) - Number(b);
  const digits = Math.max(...[a, b].map((text) => text.split('.')[1]?.length ?? 0));
  const [left, right] = [a, b].map((text) => {
    const [whole = '', fraction = ''] = text.split('.');
    return BigInt(whole.concat(fraction.padEnd(digits, '0')));
  });
  return left === right ? 0 : (left ?? 0n) < (right ?? 0n) ? -1 : 1;
}

const among = (c: string, values: readonly string[]) => `${c} IN (${values.map(textLiteral).join(', ')})`;
type Bound = string | number | bigint;
const between = (c: string, min: Bound, max: Bound) => `${c} BETWEEN ${min} AND ${max}`;

/** The conditions on the column `c` that are the same on both engines. */
function condition(type: ColumnType, c: string): string | undefined {
  switch (type.kind) {
    case 'integer':
      return between(c, type.min ?? Number.MIN_SAFE_INTEGER, type.max ?? Number.MAX_SAFE_INTEGER);
    case 'bigint': {
      const bounds = [
        ...(type.min === undefined ? [] : [`${c} >= ${sqlBigint(type.min)}`]),
        ...(type.max === undefined ? [] : [`${c} <= ${type.max}`]),
      ];
      return bounds.length === 0 ? undefined : bounds.join(' AND ');
    }
    case 'number':
      return between(c, real(type.min ?? -Number.MAX_VALUE), real(type.max ?? Number.MAX_VALUE));
    case 'text':
      return `length(${c}) <= ${type.max}`;
    case 'bytes':
      return `octet_length(${c}) <= ${type.max}`;
    default:
      return undefined;
  }
}

/** A literal of -2^63 would be the negative of a number beyond 64 bits. */
function sqlBigint(value: bigint): string {
  return value === -(2n ** 63n) ? '(-9223372036854775807 - 1)' : String(value);
}

/** A literal that both engines read as a double. */
function real(value: number): string {
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

function sqliteCondition(type: ColumnType, c: string): string | undefined {
  switch (type.kind) {
    case 'decimal': {
      const { min, max } = decimalBounds(type);
      return between(c, min.replace('.', ''), max.replace('.', ''));
    }
    case 'boolean':
      return `${c} IN (0, 1)`;
    case 'date':
      // date() makes another text of a day that does not exist, and null of texts that are not dates.
      return `${c} IS date(${c}) AND ${c} >= '0001'`;
    case 'timestamp':
      return between(c, FIRST_TIME, LAST_TIME);
    case 'uuid':
      return `length(${c}) = 36 AND ${c} NOT GLOB '*[^-0-9a-f]*'`;
    case 'enum':
      return among(c, type.values);
    case 'json':
      return `json_valid(${c}) AND octet_length(${c}) <= ${type.maxBytes}`;
    default:
      return condition(type, c);
  }
}

/** The bounds of a timestamp: the years 0001 to 9999 in UTC. */
const FIRST_TIME = Date.parse('0001-01-01T00:00:00.000Z');
const LAST_TIME = Date.parse('9999-12-31T23:59:59.999Z');

function postgresCondition(type: ColumnType, c: string): string | undefined {
  switch (type.kind) {
    case 'decimal': {
      // The bounds also refuse NaN, which is above all numbers.
      const { min, max } = decimalBounds(type);
      return between(c, min, max);
    }
    case 'date':
      return `${c} BETWEEN '0001-01-01'::date AND '9999-12-31'::date`;
    case 'timestamp':
      return `${c} BETWEEN '0001-01-01T00:00:00Z'::timestamptz AND '9999-12-31T23:59:59.999Z'::timestamptz`;
    case 'enum':
      return among(c, type.values);
    case 'json':
      return `octet_length(${c}::text) <= ${type.maxBytes}`;
    default:
      return condition(type, c);
  }
}

function decimalBounds({ precision, scale, min, max }: Extract<ColumnType, { kind: 'decimal' }>) {
  const nines = '9'.repeat(precision);
  const most = scale === 0 ? nines : `${nines.slice(0, -scale) || '0'}.${nines.slice(-scale)}`;
  return { min: min ?? `-${most}`, max: max ?? most };
}

/**
 * The indexes of a relation. All but unique ones end with the key, so that they yield equal rows in the order of
 * lists; SQLite appends it if it is the number of the row.
 */
function indexesOf(
  engine: Engine,
  { table, key, columns, unique, indexes, references }: Relation,
): readonly Index[] {
  const folds = new Set(
    columns.filter(({ type }) => type.kind === 'text' && type.fold).map(({ name }) => name),
  );
  const index = (kind: 'unique' | 'index', names: readonly string[], all = names): Index => ({
    name: objectName(table, kind, names),
    isUnique: kind === 'unique',
    columns: all.map((name) => ({ name, fold: folds.has(name) })),
  });
  const isNumbered = columns.some(({ name, type }) => type.kind === 'serial' && key[0] === name);
  const keyed = (names: readonly string[]) =>
    engine === 'sqlite' && isNumbered ? names : [...new Set([...names, ...key])];
  // The primary key compares bytes.
  const foldedKey = key.some((name) => folds.has(name)) ? [key] : [];
  const found = [
    ...[...foldedKey, ...unique].map((names) => index('unique', names)),
    ...indexes.map((names) => index('index', names, keyed(names))),
  ];
  for (const reference of references) {
    const wanted = [...new Set([...reference.columns, ...key])];
    const serves = (names: readonly string[]) =>
      wanted.every((name, at) => names[at] === name && !folds.has(name));
    const others = found.map(({ columns: [...those] }) => [...those.map(({ name }) => name), ...key]);
    if ([key, ...others].some((names) => serves([...new Set(names)]))) continue;
    found.push(index('index', reference.columns, keyed(reference.columns)));
  }
  return [...new Map(found.map((each) => [each.name, each])).values()];
}

/** A number of 32 bits that tells declarations apart. */
export function fingerprintOf(relations: readonly Relation[]): number {
  const sorted = relations.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const text = JSON.stringify(sorted, (name, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : name === 'before' ? undefined : value,
  );
  return createHash('sha256').update(text).digest().readInt32BE();
}
