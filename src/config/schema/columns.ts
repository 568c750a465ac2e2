import * as v from 'valibot';
import { isRecord } from '../../core/json.ts';
import { describeValue, didYouMean } from '../../core/text.ts';
import { codecOf } from '../../relations/codecs.ts';
import type { ColumnType, Default } from '../../relations/relation.ts';
import type { ColumnData } from './declaration.ts';
import { type Given, readObject, textField, toggleField, wholeNumberField } from './fields.ts';
import { claimField, ruleField } from './rules.ts';

/** Columns and relations are named so; longer names do not fit into PostgreSQL. */
export const NAME = /^[a-z][A-Za-z0-9_]{0,62}$/;
export const NAMED =
  'must be a name of letters, digits and "_" that begins with a lower-case letter, at most 63';
/** Tables of other programs and their columns also have upper-case letters. */
export const EXISTING_NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
export const nameField = textField(EXISTING_NAME, NAMED);

/** Maximum length of a text, in characters. */
export const MAX_TEXT = 65_536;
/** Maximum length of bytes and JSON, as of a whole row. */
const MAX_BYTES = 1_048_576;
/** Maximum number of digits of a decimal. */
export const MAX_PRECISION = 18;

const sizeField = (max: number) => wholeNumberField(1, max, `must be a whole number from 1 to ${max}`);
const boundField = (message: string) => v.optional(v.union([v.string(), v.number()], message));

const common = {
  nullable: v.optional(toggleField),
  default: v.optional(v.unknown()),
  unique: v.optional(toggleField),
  was: v.optional(nameField),
  read: v.optional(ruleField),
  write: v.optional(ruleField),
  readonly: v.optional(toggleField),
  immutable: v.optional(toggleField),
  set: v.optional(claimField),
  generated: v.optional(v.picklist(['always', 'by default'], 'must be always or by default')),
};
const WHOLE = 'must be a whole number that a double holds exactly';
const whole = wholeNumberField(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, WHOLE);
const finite = v.pipe(v.number('must be a number'), v.finite('must be a number'));
const bigBound = boundField('must be a whole number, as a text such as "42"');
const decimalBound = boundField('must be a decimal number, as a text such as "12.50"');
const VALUES =
  'must be an array of texts, each once and none of them empty or with NUL or half of a surrogate pair';
const isValue = (text: string) => text !== '' && !text.includes('\0') && text.isWellFormed();

const SHAPE = 'must be a column such as { type: "text", max: 200 }';
const type = v.optional(v.unknown());

/** The data of a column of each type. */
export const columnSchemas = {
  serial: v.object({ type, open: v.optional(toggleField), was: common.was }, SHAPE),
  integer: v.object({ type, ...common, min: v.optional(whole), max: v.optional(whole) }, SHAPE),
  bigint: v.object({ type, ...common, min: bigBound, max: bigBound }, SHAPE),
  decimal: v.object(
    {
      type,
      ...common,
      precision: sizeField(MAX_PRECISION),
      scale: wholeNumberField(0, MAX_PRECISION, `must be a whole number from 0 to ${MAX_PRECISION}`),
      min: decimalBound,
      max: decimalBound,
    },
    SHAPE,
  ),
  number: v.object({ type, ...common, min: v.optional(finite), max: v.optional(finite) }, SHAPE),
  boolean: v.object({ type, ...common }, SHAPE),
  text: v.object(
    { type, ...common, max: v.optional(sizeField(MAX_TEXT)), fold: v.optional(toggleField) },
    SHAPE,
  ),
  date: v.object({ type, ...common }, SHAPE),
  timestamp: v.object({ type, ...common }, SHAPE),
  uuid: v.object({ type, ...common }, SHAPE),
  enum: v.object(
    {
      type,
      ...common,
      values: v.pipe(
        v.array(v.pipe(v.string(VALUES), v.check(isValue, VALUES)), VALUES),
        v.minLength(1, VALUES),
        v.check((values) => new Set(values).size === values.length, VALUES),
      ),
    },
    SHAPE,
  ),
  json: v.object({ type, ...common, maxBytes: v.optional(sizeField(MAX_BYTES)) }, SHAPE),
  bytes: v.object({ type, ...common, max: v.optional(sizeField(MAX_BYTES)) }, SHAPE),
  reference: v.object(
    {
      type,
      ...common,
      to: v.string('must be the name of a relation'),
      columns: v.optional(v.array(nameField, 'must be an array of names of columns')),
      inverse: v.optional(nameField),
      onDelete: v.optional(
        v.picklist(['restrict', 'cascade', 'null'], 'must be one of restrict, cascade, null'),
      ),
    },
    SHAPE,
  ),
} as const satisfies Readonly<Record<ColumnData['type'], unknown>>;

type ColumnKind = keyof typeof columnSchemas;

/** What a declaration may say of a column one day. */
const LATER = ['computed'];

/** The data of a column, with its options valid. */
export type ReadColumn = {
  [K in ColumnKind]: v.InferOutput<(typeof columnSchemas)[K]> & { readonly kind: K };
}[ColumnKind];

/** Reads the data of a column; undefined if there are problems. */
export function readColumn({ value, path }: Given, problems: string[]): ReadColumn | undefined {
  if (!isRecord(value)) {
    problems.push(`${path} ${SHAPE}`);
    return undefined;
  }
  const kinds = Object.keys(columnSchemas);
  const { type: kind } = value;
  if (typeof kind !== 'string' || !kinds.includes(kind)) {
    const given = kind === undefined ? '' : ` ${describeValue(kind)}`;
    const guess = typeof kind === 'string' ? didYouMean(kind, kinds) : '';
    problems.push(`${path}.type${given} must be one of ${kinds.join(', ')}${guess}`);
    return undefined;
  }
  const rest = withoutLater({ value, path }, LATER, problems);
  const read = readObject(columnSchemas[kind as ColumnKind], { value: rest, path }, problems);
  return read === undefined ? undefined : ({ ...read, kind } as ReadColumn);
}

/** The keys of an object without those that nothing implements, each of which is a problem. */
export function withoutLater({ value, path }: Given, later: readonly string[], problems: string[]): unknown {
  if (!isRecord(value)) return value;
  const found = later.filter((key) => value[key] !== undefined);
  for (const key of found) problems.push(`${path}.${key} is not supported by this version; remove it`);
  return Object.fromEntries(Object.entries(value).filter(([key]) => !found.includes(key)));
}

type TypedColumn = Exclude<ReadColumn, { readonly kind: 'reference' }>;

/** The type of a column with its bounds checked; undefined if there are problems. */
export function typeOf(column: TypedColumn, path: string, problems: string[]): ColumnType | undefined {
  switch (column.kind) {
    case 'serial':
      return { kind: 'serial', open: column.open ?? false };
    case 'text':
      return { kind: 'text', max: column.max ?? MAX_TEXT, fold: column.fold ?? false };
    case 'enum':
      return { kind: 'enum', values: column.values };
    case 'json':
      return { kind: 'json', maxBytes: column.maxBytes ?? MAX_TEXT };
    case 'bytes':
      return { kind: 'bytes', max: column.max ?? MAX_BYTES };
    case 'integer':
    case 'number':
      return bounded({ kind: column.kind }, column, path, problems);
    case 'bigint':
      return bounded({ kind: 'bigint' }, column, path, problems);
    case 'decimal':
      if (column.scale > column.precision) {
        problems.push(`${path}.scale must be at most the precision, ${column.precision}`);
        return undefined;
      }
      return bounded(
        { kind: 'decimal', precision: column.precision, scale: column.scale },
        column,
        path,
        problems,
      );
    default:
      return { kind: column.kind };
  }
}

/** A type with the bounds of its data, read as values of the type. */
function bounded(
  type: ColumnType,
  data: Readonly<Record<'min' | 'max', unknown>> | object,
  path: string,
  problems: string[],
) {
  const codec = codecOf(type);
  const bounds: Record<string, unknown> = {};
  for (const name of ['min', 'max'] as const) {
    const given = (data as Readonly<Record<string, unknown>>)[name];
    if (given === undefined) continue;
    const parsed = codec.parse(given);
    if ('problem' in parsed) {
      problems.push(`${path}.${name} ${parsed.problem}`);
      return undefined;
    }
    bounds[name] = parsed.value;
  }
  const { min, max } = bounds as { readonly min?: number; readonly max?: number };
  if (min !== undefined && max !== undefined && codec.compare(min, max) > 0) {
    problems.push(`${path}.min must be at most max`);
    return undefined;
  }
  return { ...type, ...bounds } as ColumnType;
}

/** The defaults that are computed for a row. */
const COMPUTED: Readonly<Partial<Record<ColumnType['kind'], readonly (Default['kind'] & string)[]>>> = {
  date: ['now'],
  timestamp: ['now'],
  uuid: ['v4', 'v7'],
  text: ['caller'],
};

/** The default of a column; undefined if there is none, or a problem. */
export function defaultOf(
  type: ColumnType,
  given: unknown,
  path: string,
  problems: string[],
): Default | undefined {
  if (given === undefined) return undefined;
  const computed = COMPUTED[type.kind] ?? [];
  const found = computed.find((kind) => kind === given);
  if (found !== undefined && found !== 'value') return { kind: found };
  const parsed = given === null ? { problem: 'must not be null; leave it out' } : codecOf(type).parse(given);
  if ('value' in parsed) return { kind: 'value', value: parsed.value };
  const or = type.kind === 'text' ? [] : computed.map((kind) => `, or "${kind}"`);
  problems.push(`${path}.default ${parsed.problem}${or.join('')}`);
  return undefined;
}

/** The most bytes that a value takes in an index; undefined for a type that no index takes. */
export function indexedBytes(type: ColumnType): number | undefined {
  switch (type.kind) {
    case 'json':
      return undefined;
    case 'text':
      return 4 * type.max;
    case 'bytes':
      return type.max;
    case 'enum':
      return Math.max(...type.values.map((value) => Buffer.byteLength(value)));
    default:
      return 16;
  }
}
