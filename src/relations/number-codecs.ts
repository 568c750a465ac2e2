import { type Codec, compareNumbers, counted, type Parsed, type Present, problem, storage } from './codec.ts';
import type { ColumnType } from './relation.ts';

/** The problem of a value outside the bounds of its column. */
function outside<T extends number | bigint>(value: T, min: T | undefined, max: T | undefined) {
  if (min !== undefined && value < min) return problem(`must be at least ${min}`);
  return max !== undefined && value > max ? problem(`must be at most ${max}`) : undefined;
}

const WHOLE = 'must be a whole number';
const INTEGER = /^-?(?:0|[1-9]\d*)$/;

export function integerCodec(min: number, max: number): Codec {
  const check = (value: number): Parsed => {
    if (!Number.isInteger(value)) return problem(WHOLE);
    // Zero has no sign in a column.
    return outside(value, min, max) ?? { value: value + 0 };
  };
  const read = (stored: Present) => Number(stored);
  return {
    parse: (value) => (typeof value === 'number' ? check(value) : problem(WHOLE)),
    parseText: (text) => (INTEGER.test(text) ? check(Number(text)) : problem(WHOLE)),
    format: String,
    formatText: String,
    compare: compareNumbers,
    sqlite: storage({ type: 'INTEGER', read }),
    postgres: storage({ type: 'bigint', read }),
  };
}

/**
 * The type of columns with 64 bits on SQLite. An INTEGER PRIMARY KEY would be the rowid, which node:sqlite
 * returns from every later write of the connection, and which fails unless it is a safe integer.
 */
const SQLITE_INT64 = 'INT';

export const MIN_INT64 = -(2n ** 63n);
export const MAX_INT64 = 2n ** 63n - 1n;
const WHOLE_TEXT = 'must be a whole number, as a text such as "42"';
/** Length of the longest number of 64 bits. */
const INT64_LENGTH = 20;

export function bigintCodec(min: bigint, max: bigint): Codec {
  const check = (value: bigint): Parsed => outside(value, min, max) ?? { value };
  const parseText = (text: string): Parsed => {
    if (!INTEGER.test(text)) return problem(WHOLE_TEXT);
    if (text.length > INT64_LENGTH)
      return problem(text.startsWith('-') ? `must be at least ${min}` : `must be at most ${max}`);
    return check(BigInt(text));
  };
  // Neither a result nor a member of JSON may become a double.
  const text = (column: string) => `CAST(${column} AS TEXT)`;
  const read = (stored: Present) => BigInt(stored as string);
  return {
    parse(value) {
      if (typeof value === 'string') return parseText(value);
      if (typeof value !== 'number' || !Number.isInteger(value)) return problem(WHOLE_TEXT);
      return Number.isSafeInteger(value)
        ? check(BigInt(value))
        : problem('must be a text, because a JSON number of this size loses digits');
    },
    parseText,
    format: (value) => `"${value}"`,
    formatText: String,
    compare: compareNumbers,
    sqlite: storage({ type: SQLITE_INT64, select: text, read, json: text }),
    postgres: storage({ type: 'bigint', bind: String, select: text, read, json: text }),
  };
}

type DecimalType = Extract<ColumnType, { readonly kind: 'decimal' }>;

const DECIMAL = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?$/;
/** Digits that every double keeps: a JSON number with more may have lost some. */
const EXACT_DIGITS = 15;
/** No decimal within any bounds is longer, except for zeros. */
const MAX_DECIMAL = 100;

export function decimalCodec({ precision, scale, min, max }: DecimalType): Codec {
  const example = (12_50n * 10n ** BigInt(scale)) / 100n;
  const shape = `must be a decimal number, as a text such as "${decimalText(example, scale)}"`;
  const limit = 10n ** BigInt(precision);
  const least = min === undefined ? undefined : scaled(min);
  const most = max === undefined ? undefined : scaled(max);
  const plain = plainDecimal(precision, scale);
  const takesPlain = (least === undefined || least <= 0n) && most === undefined;
  const parseText = (text: string): Parsed => {
    if (takesPlain && plain.test(text)) return { value: text };
    const [, sign, whole = '', fraction = ''] = (text.length <= MAX_DECIMAL && DECIMAL.exec(text)) || [];
    if (sign === undefined) return problem(shape);
    if (/[^0]/.test(fraction.slice(scale)))
      return problem(
        scale === 0
          ? 'must have no digits after the point'
          : `must have at most ${counted(scale, 'digit')} after the point`,
      );
    const value = BigInt(`${sign}${whole}${fraction.slice(0, scale).padEnd(scale, '0')}`);
    if (value >= limit || value <= -limit)
      return problem(`must have at most ${counted(precision - scale, 'digit')} before the point`);
    if (least !== undefined && value < least) return problem(`must be at least ${min}`);
    if (most !== undefined && value > most) return problem(`must be at most ${max}`);
    return { value: decimalText(value, scale) };
  };
  const unit = 10n ** BigInt(scale);
  // The sign stands apart, because the whole part of -0.5 has none.
  const sqliteText = (column: string) =>
    scale === 0
      ? `CAST(${column} AS TEXT)`
      : `iif(${column} < 0, '-', '') || (abs(${column}) / ${unit}) || '.' || printf('%0${scale}d', abs(${column}) % ${unit})`;
  const postgresText = (column: string) => `${column}::text`;
  return {
    parse(value) {
      if (typeof value === 'string') return parseText(value);
      if (typeof value !== 'number') return problem(shape);
      const text = String(value);
      const digits = text.replace(/e.*|\D/g, '').replace(/^0+|0+$/g, '');
      return digits.length <= EXACT_DIGITS
        ? parseText(text)
        : problem('must be a text, because a JSON number of so many digits loses some');
    },
    parseText,
    format: (value) => `"${value}"`,
    formatText: String,
    compare: (a, b) => compareNumbers(scaled(a as string), scaled(b as string)),
    sqlite: storage({
      type: SQLITE_INT64,
      bind: (value) => scaled(value as string),
      select: (column) => (precision <= EXACT_DIGITS ? column : `CAST(${column} AS TEXT)`),
      read: (stored) => withPoint(String(stored), scale),
      json: sqliteText,
    }),
    postgres: storage({
      type: `numeric(${precision}, ${scale})`,
      select: postgresText,
      json: postgresText,
    }),
  };
}

/** The decimals without a sign that `parseText` would write as they are. */
function plainDecimal(precision: number, scale: number): RegExp {
  const whole = precision > scale ? `(?:0|[1-9]\\d{0,${precision - scale - 1}})` : '0';
  return new RegExp(`^${whole}${scale === 0 ? '' : `\\.\\d{${scale}}`}$`);
}

/** A decimal without its point. */
function scaled(text: string): bigint {
  return BigInt(text.replace('.', ''));
}

const decimalText = (value: bigint, scale: number) => withPoint(String(value), scale);

/** A number in digits, the last `scale` of which stand behind the point. */
function withPoint(number: string, scale: number): string {
  if (scale === 0) return number;
  const sign = number.startsWith('-') ? '-' : '';
  const digits = number.slice(sign.length).padStart(scale + 1, '0');
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const NUMBER = 'must be a number';

export function numberCodec(min: number | undefined, max: number | undefined): Codec {
  const check = (value: number): Parsed => {
    if (!Number.isFinite(value)) return problem(`${NUMBER} of at most 1.7976931348623157e308`);
    return outside(value, min, max) ?? { value: value + 0 };
  };
  const read = (stored: Present) => Number(stored);
  return {
    parse: (value) => (typeof value === 'number' ? check(value) : problem(NUMBER)),
    parseText: (text) =>
      /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text) ? check(Number(text)) : problem(NUMBER),
    format: String,
    formatText: String,
    compare: compareNumbers,
    sqlite: storage({
      type: 'REAL',
      read,
      // Older versions of SQLite write 15 digits in JSON, and whole numbers with a point in all versions.
      json: (column) =>
        `CASE WHEN ${column} IS NULL THEN NULL WHEN abs(${column}) < 1e15 AND ${column} = CAST(${column} AS INTEGER) ` +
        `THEN CAST(${column} AS INTEGER) ELSE json(printf('%!.17g', ${column})) END`,
    }),
    postgres: storage({ type: 'double precision', read }),
  };
}
