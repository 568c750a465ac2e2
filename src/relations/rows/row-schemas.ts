import { listOf, named, object, type Schema, text } from '../../http/openapi.ts';
import { codecOf } from '../codecs.ts';
import { isAssigned as isAssignedAlone } from '../given-values.ts';
import { computedValue } from '../hooks/computed.ts';
import {
  type Column,
  type ColumnType,
  isComputed,
  type Relation,
  USER_COLUMNS,
  USERS,
  type Value,
} from '../relation.ts';
import type { Relations } from './conditions.ts';
import { RowFormat } from './rows.ts';

/** A parsed JSON document. */
type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** The JSON Schemas of a relation's rows, with examples that the service accepts and returns. */
export interface RowSchemas {
  /** Schemas by name, which begin with that of the relation. */
  readonly schemas: Readonly<Record<string, Schema>>;
  /** A row as it is read, with all of its columns or those that were asked for. */
  readonly shown: Schema;
  /** A group of rows with aggregates. */
  readonly group: Schema;
  /** A row as it is written and returned. */
  readonly whole: Schema;
  /** A new row. */
  readonly created: Schema;
  /** An example of a new row. */
  readonly example: unknown;
  /** A merge patch. */
  readonly patch: Schema;
  /** A row that takes the place of another; its key is in the path. */
  readonly put: Schema;
  /** A part of a key, in a path. */
  partOf(name: string): Schema;
  /** A value of a column that a filter compares. */
  filterOf(name: string): Schema;
}

/** Describes the rows of a relation. References get the examples of the rows that they refer to. */
export function rowSchemas(relations: Relations, relation: Relation): RowSchemas {
  const { name, columns, key } = relation;
  const format = new RowFormat(relation);
  const typeOf = (column: string) => (columns[format.indexOf(column)] as Column).type;
  // The service gives these columns their values.
  const isAssigned = (column: Column) =>
    isAssignedAlone(column) || column.rules?.set !== undefined || column.rules?.fixed === 'readonly';
  const isRequired = (column: Column) =>
    !isAssigned(column) && column.type.kind !== 'serial' && column.default === undefined && !column.nullable;
  const row = Object.fromEntries(
    columns.map((column) => [column.name, exampleOf(relations, relation, column)]),
  );
  const without = (skipped: (column: Column) => boolean) =>
    Object.fromEntries(
      columns.filter((each) => !skipped(each)).map((each) => [each.name, row[each.name] ?? null]),
    );
  const own = columns.find(
    (each) => !key.includes(each.name) && !isAssigned(each) && referenceOf(relation, each) === undefined,
  );
  const required = columns.filter(isRequired).map((column) => column.name);
  const referring = relation.references.filter(({ to }) => to !== USERS).flatMap((each) => each.columns);
  const needed = required.filter((each) => !referring.includes(each));
  const rest = required.filter((each) => !key.includes(each));
  const withRequired = (schema: Schema, names: readonly string[]) =>
    names.length === 0 ? schema : { allOf: [schema], required: names };
  const parts = {
    shown: `${name}.Fields`,
    whole: `${name}.Row`,
    created: `${name}.NewRow`,
    patch: `${name}.Patch`,
    group: `${name}.Group`,
  };
  return {
    schemas: {
      [parts.group]: {
        type: 'object',
        description: 'The columns of `group`, and a member for each function of `aggregate`.',
      },
      [parts.shown]: {
        ...object({
          ...membersOf(columns, (column) => ({
            ...nullable(column, stored(column.type)),
            ...(isComputed(column) && { readOnly: true }),
          })),
          ...embeddedMembers(relations, relation),
        }),
        description: `Columns of ${name}: all of them, or those that \`fields\` names, with the rows that it embeds.`,
        examples: [row],
      },
      [parts.whole]: {
        ...withRequired(
          named(parts.shown),
          columns.filter(({ rules }) => rules?.read === undefined).map((column) => column.name),
        ),
        description: `A row of ${name}.`,
      },
      [parts.created]: {
        ...object({
          ...membersOf(
            columns.filter((column) => !isAssigned(column)),
            (column) => defaulted(column, nullable(column, given(column.type))),
          ),
          ...createdMembers(relation),
        }),
        ...(needed.length === 0 ? {} : { required: needed }),
        description: `A new row of ${name}${needed.length === required.length ? '' : ', which needs the columns of a reference or its row'}.`,
        additionalProperties: false,
        examples: [without(isAssigned)],
      },
      [parts.patch]: {
        ...object(
          membersOf(
            columns.filter(
              (column) =>
                column.rules?.set === undefined && column.rules?.fixed !== 'readonly' && !isComputed(column),
            ),
            (column) => nullable(column, given(column.type)),
          ),
        ),
        description: `The columns of ${name} to change. The key is in the path and cannot change.`,
        additionalProperties: false,
        examples: [own === undefined ? {} : { [own.name]: row[own.name] ?? null }],
      },
    },
    shown: named(parts.shown),
    group: named(parts.group),
    whole: named(parts.whole),
    created: named(parts.created),
    example: without(isAssigned),
    patch: named(parts.patch),
    put: {
      ...withRequired(named(parts.patch), rest),
      examples: [without((each) => key.includes(each.name) || isAssigned(each))],
    },
    partOf: (column) => ({ ...given(typeOf(column)), examples: [row[column]] }),
    filterOf(column) {
      const { description: _bounds, ...schema } = given(typeOf(column));
      return schema;
    },
  };
}

/** The schemas of the columns that a declaration adds to users, as they are read and as they are written. */
export function addedMembers({ columns }: Relation) {
  const added = columns.filter(({ name }) => !USER_COLUMNS.includes(name));
  const members = (schema: (column: Column) => Schema) =>
    Object.fromEntries(added.map((column) => [column.name, schema(column)]));
  return {
    read: members((column) => nullable(column, stored(column.type))),
    written: members((column) => defaulted(column, nullable(column, given(column.type)))),
    changed: members((column) => nullable(column, given(column.type))),
  };
}

/** The rows of other relations that a reply may have within a row. */
function embeddedMembers(relations: Relations, { references, inverses, many }: Relation) {
  const rowOf = (to: string): Schema => (relations.has(to) ? named(`${to}.Fields`) : { type: 'object' });
  const connected = many.flatMap(({ name, through, other }) => {
    const onward = relations.get(through)?.references.find((each) => each.name === other);
    return onward === undefined ? [] : [[`${name}?`, listOf(rowOf(onward.to))] as const];
  });
  return Object.fromEntries([
    ...references.map(({ name, to }) => [`${name}?`, { anyOf: [rowOf(to), { type: 'null' }] }] as const),
    ...inverses.map(({ name, relation }) => [`${name}?`, listOf(rowOf(relation))] as const),
    ...connected,
  ]);
}

/** The new rows of other relations that may stand within a new row. */
function createdMembers({ references, inverses }: Relation) {
  const about = (to: string, columns: string) => ({
    type: 'object',
    description: `A new row of ${to}, ${columns}.`,
  });
  return Object.fromEntries([
    ...references
      .filter(({ to }) => to !== USERS)
      .map(({ name, to, columns }) => [`${name}?`, about(to, `instead of ${columns.join(', ')}`)] as const),
    ...inverses.map(({ name, relation }) => {
      return [`${name}?`, listOf(about(relation, 'without the columns that refer to this row'))] as const;
    }),
  ]);
}

/** A row, or an array of rows. */
export function oneOrMany(schema: Schema): Schema {
  return { oneOf: [schema, listOf(schema)] };
}

function membersOf(columns: readonly Column[], schema: (column: Column) => Schema) {
  // The names end with "?", because `required` is said apart.
  return Object.fromEntries(columns.map((column) => [`${column.name}?`, schema(column)]));
}

/** The schema of a value that may be null. */
function nullable({ nullable: isNullable }: Column, schema: Schema): Schema {
  const { type, enum: values } = schema;
  if (!isNullable || type === undefined) return schema;
  return { ...schema, type: [type, 'null'], ...(Array.isArray(values) && { enum: [...values, null] }) };
}

const COMPUTED = {
  now: 'Default: the time of the write.',
  v4: 'Default: a random UUID.',
  v7: 'Default: a UUID with the time of the write.',
  caller: 'Default: the name of the caller.',
  database: 'Default: that of the database.',
} as const;

/** Says the default. Beside the type it would make generators of clients demand the member. */
function defaulted({ type, default: found }: Column, schema: Schema): Schema {
  if (found === undefined) return schema;
  if (found.kind === 'value') return { allOf: [{ ...schema, default: jsonOf(type, found.value) }] };
  const { description } = schema;
  const said = typeof description === 'string' ? `${description} ` : '';
  return { ...schema, description: said + COMPUTED[found.kind] };
}

function jsonOf(type: ColumnType, value: Value): Json {
  return value === null ? null : (JSON.parse(codecOf(type).format(value)) as Json);
}

/** The schema of values as replies have them. */
function stored(type: ColumnType): Schema {
  switch (type.kind) {
    case 'serial':
      return { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };
    case 'integer':
      return {
        type: 'integer',
        minimum: type.min ?? Number.MIN_SAFE_INTEGER,
        maximum: type.max ?? Number.MAX_SAFE_INTEGER,
      };
    case 'bigint':
      return text(bounds(type) ?? 'A whole number of 64 bits.', {
        pattern: '^-?(0|[1-9]\\d*)$',
        maxLength: 20,
      });
    case 'decimal':
      return decimal(type, type.scale === 0 ? '' : `\\.\\d{${type.scale}}`);
    case 'number':
      return { type: 'number', ...defined({ minimum: type.min, maximum: type.max }) };
    case 'boolean':
      return { type: 'boolean' };
    case 'text':
      return text(undefined, { maxLength: type.max });
    case 'date':
      return text(undefined, { format: 'date' });
    case 'timestamp':
      return text(undefined, { format: 'date-time' });
    case 'uuid':
      return text(undefined, { format: 'uuid' });
    case 'enum':
      return text(undefined, { enum: type.values });
    case 'json':
      return { description: `Any JSON of at most ${type.maxBytes} bytes.` };
    case 'bytes':
      return text(undefined, { contentEncoding: 'base64', maxLength: 4 * Math.ceil(type.max / 3) });
  }
}

/** The schema of values as requests have them: trailing digits of a decimal may be missing. */
function given(type: ColumnType): Schema {
  if (type.kind !== 'decimal') return stored(type);
  return decimal(type, type.scale === 0 ? '' : `(\\.\\d{1,${type.scale}})?`);
}

function decimal(type: Extract<ColumnType, { readonly kind: 'decimal' }>, fraction: string): Schema {
  const { precision, scale, min } = type;
  const digits = precision - scale;
  const sign = min === undefined || min.startsWith('-') ? '-?' : '';
  const whole = digits === 0 ? '0' : digits === 1 ? '\\d' : `(0|[1-9]\\d{0,${digits - 1}})`;
  return text(bounds(type), { pattern: `^${sign}${whole}${fraction}$` });
}

/** The bounds of a number that is a text, for which JSON Schema has no words. */
function bounds({ min, max }: { readonly min?: unknown; readonly max?: unknown }): string | undefined {
  if (min !== undefined && max !== undefined) return `From ${min} to ${max}.`;
  if (min !== undefined) return `At least ${min}.`;
  return max === undefined ? undefined : `At most ${max}.`;
}

function defined(members: Readonly<Record<string, unknown>>): Schema {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function referenceOf({ references }: Relation, { name }: Column) {
  return references.find(({ columns }) => columns.includes(name));
}

/** An example of a column: of a reference the key of the row that is the example of its target. */
function exampleOf(relations: Relations, relation: Relation, column: Column, depth = 0): Json {
  const reference = referenceOf(relation, column);
  if (column.computed !== undefined) {
    const valueIn = (name: string) => exampleValue(relations, relation, name, depth);
    return jsonOf(column.type, computedValue(column.computed, valueIn));
  }
  if (reference === undefined) return exampleOfType(column.type, column.name);
  if (column.nullable) return null;
  const target = relations.get(reference.to);
  const name = reference.targetColumns[reference.columns.indexOf(column.name)];
  const found = target?.columns.find((each) => each.name === name);
  // A key may refer to its own relation.
  if (target === undefined || found === undefined || depth > relations.size)
    return exampleOfType(column.type, column.name);
  return exampleOf(relations, target, found, depth + 1);
}

/** The example of another column, as a value. */
function exampleValue(relations: Relations, relation: Relation, name: string, depth: number): Value {
  const column = relation.columns.find((each) => each.name === name);
  if (column === undefined) return null;
  const parsed = codecOf(column.type).parse(exampleOf(relations, relation, column, depth));
  return 'value' in parsed ? parsed.value : null;
}

function exampleOfType(type: ColumnType, name: string): Json {
  const candidate = candidateOf(type, name);
  const { parse } = codecOf(type);
  if ('value' in parse(candidate)) return candidate;
  // Only bounds refuse a candidate.
  const { min, max } = type as { readonly min?: Value; readonly max?: Value };
  return jsonOf(type, min ?? max ?? null);
}

function candidateOf(type: ColumnType, name: string): Json {
  switch (type.kind) {
    case 'serial':
    case 'integer':
      return 1;
    case 'bigint':
      return '9007199254740993';
    case 'decimal': {
      const unit = type.precision - type.scale === 0 ? '0' : '9';
      return type.scale === 0 ? unit : `${unit}.${'9'.padEnd(type.scale, '0')}`;
    }
    case 'number':
      return 1.5;
    case 'boolean':
      return true;
    case 'text':
      return name.slice(0, type.max);
    case 'date':
      return '2024-02-29';
    case 'timestamp':
      return '2024-02-29T12:30:00.000Z';
    case 'uuid':
      return '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b';
    case 'enum':
      return type.values[0] ?? '';
    case 'json':
      return type.maxBytes < 2 ? 1 : {};
    case 'bytes':
      return type.max < 5 ? 'AA==' : 'aGVsbG8=';
  }
}
