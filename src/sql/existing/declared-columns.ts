import type { ColumnData } from '../../config/schema/declaration.ts';
import { codecOf } from '../../relations/codecs.ts';
import type { ColumnType } from '../../relations/relation.ts';
import { type Engine, tagOf } from '../schema/tables.ts';
import { type ReadCheck, readCheck } from './checks.ts';
import type { FoundColumn, FoundTable } from './found.ts';
import { declaredAs } from './native-types.ts';

/** A column as it is written; its type decides which members it may have. */
type Written = { readonly type: ColumnData['type'] } & Readonly<Record<string, unknown>>;

/**
 * The data of a column by its type, its checks and its default; undefined if Portico has no type for it. `isOwn` says that
 * Portico has made the table.
 */
export function columnData(
  engine: Engine,
  table: FoundTable,
  column: FoundColumn,
  isOwn: boolean,
): ColumnData | undefined {
  const checks = table.checks.flatMap(({ name = '', expression, columns }) =>
    columns.length === 1 && columns[0] === column.name
      ? [{ tag: tagOf(name), expression, parts: readCheck(expression) ?? [] }]
      : [],
  );
  const isKey = table.key.length === 1 && table.key[0] === column.name;
  const { numbered } = column;
  // On SQLite each whole number that is the key numbers the rows; Portico's are never used again.
  const isSqlite = engine === 'sqlite';
  if (isKey && numbered !== undefined && !(isOwn && isSqlite && numbered === 'by default')) {
    const isOpen = isSqlite ? !isOwn : numbered === 'by default';
    return { type: 'serial', ...(isOpen && { open: true }) };
  }
  const kind = checks
    .flatMap(({ tag }) => tag?.replace(/_[0-9a-f]{8}$/, '') ?? [])
    .find((tag) => tag !== 'required');
  const type = isOwn
    ? ownType(engine, column, kind, checks.map(({ expression }) => expression).join(' AND '))
    : declaredAs(engine, column);
  if (type === undefined) return undefined;
  const bounded = withChecks(
    { ...type } as Written,
    checks.flatMap(({ parts }) => parts),
    engine,
    isOwn,
  );
  const given = defaultData(engine, bounded, column, isOwn);
  const { nullable } = column;
  const folds = isOwn && table.indexes.some(({ folded }) => folded.includes(column.name));
  return {
    ...bounded,
    ...(folds && { fold: true }),
    ...(nullable && { nullable: true }),
    ...(column.isGenerated ? { generated: 'always' } : given),
  } as ColumnData;
}

/** The type of a column that Portico has made: its check has the kind, but for a few that have no check. */
function ownType(
  engine: Engine,
  column: FoundColumn,
  kind: string | undefined,
  expression: string,
): ColumnData | undefined {
  const [, scale] = /^decimal(\d+)$/.exec(kind ?? '') ?? [];
  if (scale !== undefined) {
    const [, precision = '18'] = /\((\d+),/.exec(column.type) ?? [];
    return { type: 'decimal', precision: Number(precision), scale: Number(scale) };
  }
  const [, bytes] = /octet_length\(.*\) <= (\d+)/.exec(expression) ?? [];
  if (kind === 'json' || kind === 'bytes')
    return {
      type: kind,
      ...(bytes !== undefined && { [kind === 'json' ? 'maxBytes' : 'max']: Number(bytes) }),
    };
  // Only numbers of 64 bits have no check on SQLite.
  if (kind === undefined && engine === 'sqlite') return { type: 'bigint' };
  return kind === undefined ? declaredAs(engine, column) : ({ type: kind } as ColumnData);
}

const MAX_SAFE = Number.MAX_SAFE_INTEGER;

function withChecks(type: Written, checks: readonly ReadCheck[], engine: Engine, isOwn: boolean): Written {
  const values = checks.find((check) => check.values !== undefined)?.values;
  if (values !== undefined && (type.type === 'text' || type.type === 'enum')) {
    const isPossible = values.every((value) => value !== '') && new Set(values).size === values.length;
    return isPossible ? { type: 'enum', values } : type;
  }
  if (type.type === 'text') {
    const lengths = checks.flatMap(({ length }) => (length === undefined ? [] : [Number(length)]));
    const max = Math.min(...lengths, Number(type.max ?? Number.POSITIVE_INFINITY));
    return Number.isFinite(max) && max > 0 ? { ...type, max } : type;
  }
  const bound = (side: 'min' | 'max', open: 'above' | 'below') =>
    checks.map((check) => check[side]).find((each) => each !== undefined) ??
    checks
      .map((check) => nextTo(type, check[open], side === 'min' ? 1 : -1))
      .find((each) => each !== undefined);
  const min = bound('min', 'above');
  const max = bound('max', 'below');
  switch (type.type) {
    case 'integer':
    case 'bigint': {
      const isSafe = (text: string | undefined) => text !== undefined && Math.abs(Number(text)) <= MAX_SAFE;
      const isWhole = [min, max].every((text) => text === undefined || /^-?\d+$/.test(text));
      if (!isWhole) return type;
      const isInteger = isOwn
        ? type.type === 'integer'
        : type.type === 'integer' || (isSafe(min) && isSafe(max));
      if (!isInteger) return { ...type, ...(min && { min }), ...(max && { max }) };
      return {
        type: 'integer',
        ...(isSafe(min) && Number(min) !== -MAX_SAFE && { min: Number(min) }),
        ...(isSafe(max) && Number(max) !== MAX_SAFE && { max: Number(max) }),
      };
    }
    case 'number':
      return {
        ...type,
        ...(min !== undefined && Number(min) !== -Number.MAX_VALUE && { min: Number(min) }),
        ...(max !== undefined && Number(max) !== Number.MAX_VALUE && { max: Number(max) }),
      };
    case 'decimal':
      return decimalData(type, { min, max }, isOwn && engine === 'sqlite');
    default:
      return type;
  }
}

/** The bound next to one that is excluded; undefined if no bound of the type is. */
function nextTo({ type, scale }: Written, bound: string | undefined, step: 1 | -1): string | undefined {
  if (bound === undefined || !/^-?\d+(?:\.\d+)?$/.test(bound)) return undefined;
  if (type !== 'integer' && type !== 'bigint' && type !== 'decimal') return undefined;
  const digits = type === 'decimal' ? Number(scale) : 0;
  const scaled = unpointed(bound, digits);
  return scaled === undefined ? undefined : pointed(scaled + BigInt(step), digits);
}

/** A decimal as a whole number of its last digits; undefined if it has more digits. */
function unpointed(text: string, scale: number): bigint | undefined {
  const [whole = '0', fraction = ''] = text.split('.');
  if (/[^0]/.test(fraction.slice(scale))) return undefined;
  return BigInt(whole + fraction.slice(0, scale).padEnd(scale, '0'));
}

function pointed(value: bigint, scale: number): string {
  if (scale === 0) return String(value);
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** `isScaled` says that the bounds are whole numbers, by which alone the precision can be told. */
function decimalData(
  type: Written,
  given: { readonly min: string | undefined; readonly max: string | undefined },
  isScaled: boolean,
): Written {
  const scale = Number(type.scale);
  const [min, max] = [given.min, given.max].map((text) =>
    text === undefined ? undefined : isScaled ? BigInt(text) : unpointed(text, scale),
  );
  const digits = (value: bigint | undefined) => String(value ?? 0n).replace('-', '').length;
  const precision = isScaled ? Math.max(digits(min), digits(max), scale, 1) : Number(type.precision);
  const limit = 10n ** BigInt(precision);
  // The type itself gives its least and its greatest number.
  const [least, greatest] = [1n - limit, limit - 1n];
  return {
    ...type,
    precision,
    ...(min !== undefined && min > least && min <= greatest && { min: pointed(min, scale) }),
    ...(max !== undefined && max < greatest && max >= least && { max: pointed(max, scale) }),
  };
}

const LITERAL =
  /^\(*(?:(?<hex>[xX]'[0-9a-fA-F]*'|'\\x[0-9a-f]*')|'(?<text>(?:[^']|'')*)'|\(?(?<bare>[-+]?[\d.]+(?:e[+-]?\d+)?|true|false|null)\)?)\)*(?:::[\w". ]+(?:\([\d,]+\))?(?: with(?:out)? time zone)?)*$/i;
const NOW =
  /^\(*(?:now\(\)|current_timestamp(?:\(\d\))?|current_date|localtimestamp|datetime\('now'\)|date\('now'\))\)*(?:::[\w ]+)?$/i;
const RANDOM_UUID = /^(?:\w+\.)?(?:gen_random_uuid|uuid_generate_v4)\(\)$/i;

/** The default as a declaration writes it, or that only the database knows it. */
function defaultData(
  engine: Engine,
  type: Written,
  { default: expression }: FoundColumn,
  isOwn: boolean,
): Readonly<Record<string, unknown>> {
  if (expression === undefined) return {};
  if (NOW.test(expression) && (type.type === 'timestamp' || type.type === 'date')) return { default: 'now' };
  if (RANDOM_UUID.test(expression) && type.type === 'uuid') return { default: 'v4' };
  const { hex, text, bare } = LITERAL.exec(expression)?.groups ?? {};
  if (bare?.toLowerCase() === 'null') return {};
  const literal = text?.replaceAll("''", "'") ?? bare;
  const isScaled = isOwn && engine === 'sqlite';
  const value = hex === undefined ? constantOf(type, literal, isScaled) : bytesOf(type, hex);
  return value === undefined ? { generated: 'by default' } : { default: value };
}

function bytesOf({ type }: Written, hex: string): string | undefined {
  return type === 'bytes'
    ? Buffer.from(hex.replace(/^[xX]?'(?:\\x)?|'$/g, ''), 'hex').toString('base64')
    : undefined;
}

/** A constant as a value of a type; undefined if it is none. */
function constantOf(type: Written, literal: string | undefined, isScaled: boolean): unknown {
  if (literal === undefined) return undefined;
  const value = plainValue(type, literal, isScaled);
  const parsed = codecOf({
    ...COLUMN,
    ...type,
    kind: type.type,
    min: undefined,
    max: undefined,
  } as unknown as ColumnType).parse(value);
  // A text could be the word for the caller.
  return 'value' in parsed && !(type.type === 'text' && value === 'caller') ? value : undefined;
}

/** What a type may leave out. */
const COLUMN = { max: 65_536, maxBytes: 1_048_576, fold: false };

function plainValue({ type, scale }: Written, literal: string, isScaled: boolean): unknown {
  switch (type) {
    case 'integer':
    case 'number':
      return Number(literal);
    case 'boolean':
      return ['true', 't', '1'].includes(literal.toLowerCase());
    case 'decimal':
      return isScaled ? pointed(BigInt(literal), Number(scale)) : literal;
    case 'timestamp': {
      const at = /^-?\d+$/.test(literal) ? Number(literal) : Date.parse(inUtc(literal));
      return Number.isNaN(at) ? undefined : new Date(at).toISOString();
    }
    case 'json':
      try {
        return JSON.parse(literal) as unknown;
      } catch {
        return undefined;
      }
    default:
      return literal;
  }
}

function inUtc(text: string): string {
  const iso = text.replace(' ', 'T');
  return /(?:Z|[+-]\d\d(?::?\d\d)?)$/.test(iso) ? iso.replace(/([+-]\d\d)$/, '$1:00') : `${iso}Z`;
}
