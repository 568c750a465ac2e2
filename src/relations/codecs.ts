import { folded } from '../core/text.ts';
import {
  type Codec,
  compareNumbers,
  counted,
  type Parsed,
  type Present,
  problem,
  same,
  storage,
} from './codec.ts';
import { storedCodec } from './existing/stored-forms.ts';
import {
  bigintCodec,
  decimalCodec,
  integerCodec,
  MAX_INT64,
  MIN_INT64,
  numberCodec,
} from './number-codecs.ts';
import type { ColumnType, Value } from './relation.ts';

const codecs = new WeakMap<ColumnType, Codec>();

/** The codec of a type; the same for the same object. */
export function codecOf(type: ColumnType): Codec {
  let codec = codecs.get(type);
  if (codec === undefined) {
    const { stored } = type;
    codec = stored === undefined ? makeCodec(type) : storedCodec(makeCodec(type), type, stored);
    codecs.set(type, codec);
  }
  return codec;
}

/** Maximum size of values that are not texts, documents or bytes. */
export const SMALL = 64;

/** Maximum size of a value in bytes. */
export function maxBytesOf(type: ColumnType): number {
  switch (type.kind) {
    case 'text':
      return 4 * type.max;
    case 'json':
      return type.maxBytes;
    case 'bytes':
      return type.max;
    default:
      return SMALL;
  }
}

/** The order of values that may be null: nulls come last, ascending and descending. */
export function compareNullable({ compare }: Codec, a: Value, b: Value, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return descending ? compare(b, a) : compare(a, b);
}

/**
 * The function that the expressions of `bytes` call on SQLite. A connection that uses them has to define it.
 */
export const SQLITE_BASE64 = {
  name: 'portico_base64',
  call: (bytes: unknown): string | null => (bytes instanceof Uint8Array ? base64(bytes) : null),
} as const;

function makeCodec(type: ColumnType): Codec {
  switch (type.kind) {
    case 'serial':
      return integerCodec(1, Number.MAX_SAFE_INTEGER);
    case 'integer':
      return integerCodec(type.min ?? Number.MIN_SAFE_INTEGER, type.max ?? Number.MAX_SAFE_INTEGER);
    case 'bigint':
      return bigintCodec(type.min ?? MIN_INT64, type.max ?? MAX_INT64);
    case 'decimal':
      return decimalCodec(type);
    case 'number':
      return numberCodec(type.min, type.max);
    case 'boolean':
      return booleanCodec();
    case 'text':
      return textCodec(type.max, type.fold);
    case 'date':
      return dateCodec();
    case 'timestamp':
      return timestampCodec();
    case 'uuid':
      return uuidCodec();
    case 'enum':
      return enumCodec(type.values);
    case 'json':
      return jsonCodec(type.maxBytes);
    case 'bytes':
      return bytesCodec(type.max);
  }
}

function booleanCodec(): Codec {
  const refused = problem('must be true or false');
  return {
    parse: (value) => (typeof value === 'boolean' ? { value } : refused),
    parseText: (text) => (text === 'true' || text === 'false' ? { value: text === 'true' } : refused),
    format: String,
    formatText: String,
    compare: compareNumbers,
    sqlite: storage({
      type: 'INTEGER',
      bind: Number,
      read: (stored) => Number(stored) === 1,
      json: (column) => `json(iif(${column}, 'true', iif(${column} IS NULL, NULL, 'false')))`,
    }),
    // The driver would send a boolean as text in any case.
    postgres: storage({ type: 'boolean', bind: String }),
  };
}

/** Compares texts by code points, as both engines compare their UTF-8. */
function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left === right) continue;
    // Surrogates stand for code points above all other units.
    const isLeftHigher = isSurrogate(left) === isSurrogate(right) ? left > right : isSurrogate(left);
    return isLeftHigher ? 1 : -1;
  }
  return compareNumbers(a.length, b.length);
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;

/** Why no engine can store a text, or PostgreSQL cannot. */
function unstorable(text: string): Parsed | undefined {
  if (text.includes('\0')) return problem('must not contain the character NUL');
  return text.isWellFormed() ? undefined : problem('must not contain half of a surrogate pair');
}

/** Length of a text in code points. */
function codePoints(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

const quoted = (value: Present) => JSON.stringify(value);

function textCodec(max: number, fold: boolean): Codec {
  const parseText = (text: string): Parsed => {
    // A character has at most two units.
    if (text.length > 2 * max || (text.length > max && codePoints(text) > max))
      return problem(`must have at most ${counted(max, 'character')}`);
    return unstorable(text) ?? { value: text };
  };
  return {
    parse: (value) => (typeof value === 'string' ? parseText(value) : problem('must be a text')),
    parseText,
    format: quoted,
    formatText: String,
    compare: fold
      ? (a, b) => compareTexts(folded(a as string), folded(b as string))
      : (a, b) => compareTexts(a as string, b as string),
    sqlite: storage({ type: 'TEXT', compared: fold ? (text) => `${text} COLLATE NOCASE` : same }),
    postgres: storage({ type: 'text', compared: fold ? (text) => `lower(${text} COLLATE "C")` : same }),
  };
}

const DATE = 'must be a date from 0001-01-01 to 9999-12-31, such as "2024-02-29"';

const DAYS_OF_MONTHS: readonly number[] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Whether there is such a day, in the Gregorian calendar at all times. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  // To parse a Date and to write it takes several times as long.
  const year = 100 * twoDigits(text, 0) + twoDigits(text, 2);
  const month = twoDigits(text, 5);
  const day = twoDigits(text, 8);
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const last = month === 2 && isLeap ? 29 : (DAYS_OF_MONTHS[month - 1] ?? 0);
  return year > 0 && day > 0 && day <= last;
}

/** The number of two ASCII digits. */
function twoDigits(text: string, at: number): number {
  return 10 * (text.charCodeAt(at) - ZERO) + text.charCodeAt(at + 1) - ZERO;
}

const ZERO = 0x30;

function dateCodec(): Codec {
  const parseText = (text: string): Parsed => (isDate(text) ? { value: text } : problem(DATE));
  const postgresText = (column: string) => `to_char(${column}, 'YYYY-MM-DD')`;
  return {
    parse: (value) => (typeof value === 'string' ? parseText(value) : problem(DATE)),
    parseText,
    format: quoted,
    formatText: String,
    compare: (a, b) => compareTexts(a as string, b as string),
    sqlite: storage({ type: 'TEXT' }),
    postgres: storage({ type: 'date', select: postgresText, json: postgresText }),
  };
}

const TIMESTAMP = 'must be a time as RFC 3339 writes it, such as "2024-02-29T12:30:00.000Z"';
const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:[0-5]\d:[0-5]\d)(?:\.(\d+))?([Zz]|[+-]\d\d:[0-5]\d)$/;
/** The first and the last millisecond of a timestamp, in UTC. */
const FIRST = Date.parse('0001-01-01T00:00:00.000Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');

function parseTimestamp(text: string): Parsed {
  const [, day, time = '', fraction = '', zone = ''] = RFC_3339.exec(text) ?? [];
  if (day === undefined || !isDate(day) || time >= '24' || zone.slice(1) >= '24') return problem(TIMESTAMP);
  if (/[^0]/.test(fraction.slice(3))) return problem('must have at most 3 digits of a second');
  const value = Date.parse(`${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}${zone.toUpperCase()}`);
  if (Number.isNaN(value)) return problem(TIMESTAMP);
  if (value < FIRST || value > LAST) return problem('must be a time in the years 0001 to 9999, in UTC');
  return { value };
}

function timestampCodec(): Codec {
  const text = (value: Present) => new Date(value as number).toISOString();
  const read = (stored: Present) => Number(stored);
  return {
    parse: (value) => (typeof value === 'string' ? parseTimestamp(value) : problem(TIMESTAMP)),
    parseText: parseTimestamp,
    format: (value) => `"${text(value)}"`,
    formatText: text,
    compare: compareNumbers,
    sqlite: storage({
      type: 'INTEGER',
      read,
      json: (column) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`,
    }),
    postgres: storage({
      type: 'timestamptz(3)',
      bind: text,
      select: (column) => `(extract(epoch FROM ${column}) * 1000)::bigint`,
      read,
      json: (column) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
    }),
  };
}

const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i;

function uuidCodec(): Codec {
  const refused = problem('must be a UUID such as "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"');
  const parseText = (text: string): Parsed => (UUID.test(text) ? { value: text.toLowerCase() } : refused);
  const postgresText = (column: string) => `${column}::text`;
  return {
    parse: (value) => (typeof value === 'string' ? parseText(value) : refused),
    parseText,
    format: quoted,
    formatText: String,
    compare: (a, b) => compareTexts(a as string, b as string),
    sqlite: storage({ type: 'TEXT' }),
    postgres: storage({ type: 'uuid', select: postgresText, json: postgresText }),
  };
}

function enumCodec(values: readonly string[]): Codec {
  const refused = problem(
    `must be ${values.length === 1 ? '' : 'one of '}${values.map((value) => JSON.stringify(value)).join(', ')}`,
  );
  const parse = (value: unknown): Parsed =>
    typeof value === 'string' && values.includes(value) ? { value } : refused;
  return {
    parse,
    parseText: parse,
    format: quoted,
    formatText: String,
    compare: (a, b) => compareTexts(a as string, b as string),
    sqlite: storage({ type: 'TEXT' }),
    postgres: storage({ type: 'text' }),
  };
}

/** SQLite's limit on JSON is 1,000 levels, replies around a value included. */
const MAX_DEPTH = 200;
/** What JSON.stringify writes for NUL and for half of a surrogate pair. */
const UNSTORABLE_JSON = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][\da-f]{2})/;

/** Why a parsed document cannot be stored as it is; checked without recursion, as it may be deep. */
function jsonProblem(document: unknown): string | undefined {
  let level: readonly unknown[] = [document];
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === 'number' && !Number.isFinite(value))
        return 'must not contain a number beyond 1.7976931348623157e308';
      if (typeof value !== 'object' || value === null) continue;
      if (depth === MAX_DEPTH) return `must have at most ${MAX_DEPTH} levels`;
      // Most members are neither, and are passed over without being kept.
      for (const member of Array.isArray(value) ? value : Object.values(value)) {
        const isKept = typeof member === 'number' ? !Number.isFinite(member) : typeof member === 'object';
        if (isKept) next.push(member);
      }
    }
    level = next;
  }
  return undefined;
}

/**
 * The text is compact, with its members in the given order. PostgreSQL stores it as `json`, not `jsonb`, which
 * would sort the members and rewrite numbers. Neither engine compares documents: they are in no key, index,
 * order or filter.
 */
function jsonCodec(maxBytes: number): Codec {
  const parse = (document: unknown): Parsed => {
    if (document === undefined) return problem('must be JSON');
    const refused = jsonProblem(document);
    if (refused !== undefined) return problem(refused);
    const value = JSON.stringify(document);
    if (Buffer.byteLength(value) > maxBytes)
      return problem(`must have at most ${counted(maxBytes, 'byte')} as JSON`);
    if (UNSTORABLE_JSON.test(value))
      return problem('must not contain the character NUL or half of a surrogate pair');
    return { value };
  };
  return {
    parse,
    parseText(text) {
      let document: unknown;
      try {
        document = JSON.parse(text);
      } catch {
        return problem('must be JSON');
      }
      return parse(document);
    },
    format: String,
    formatText: String,
    compare: (a, b) => compareTexts(a as string, b as string),
    sqlite: storage({ type: 'TEXT', json: (column) => `json(${column})` }),
    postgres: storage({
      type: 'json',
      select: (column) => `${column}::text`,
      compared: (expression) => `${expression}::text COLLATE "C"`,
    }),
  };
}

const BASE64 = 'must be bytes in base64, such as "aGVsbG8="';

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** The same bytes; drivers return several kinds of them. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function bytesCodec(max: number): Codec {
  const parseText = (text: string): Parsed => {
    if (text.length > 4 * Math.ceil(max / 3)) return problem(`must have at most ${counted(max, 'byte')}`);
    const value = Buffer.from(text, 'base64');
    // Buffer skips other characters.
    if (base64(value) !== text) return problem(BASE64);
    return value.length > max
      ? problem(`must have at most ${counted(max, 'byte')}`)
      : { value: plain(value) };
  };
  const read = (stored: Present) => plain(stored as Uint8Array);
  return {
    parse: (value) => (typeof value === 'string' ? parseText(value) : problem(BASE64)),
    parseText,
    format: (value) => `"${base64(value as Uint8Array)}"`,
    formatText: (value) => base64(value as Uint8Array),
    compare: (a, b) => Buffer.compare(a as Uint8Array, b as Uint8Array),
    sqlite: storage({ type: 'BLOB', read, json: (column) => `${SQLITE_BASE64.name}(${column})` }),
    postgres: storage({
      type: 'bytea',
      read,
      // PostgreSQL breaks the lines of base64.
      json: (column) => `translate(encode(${column}, 'base64'), E'\\n', '')`,
    }),
  };
}
