import { isOwnTrigger } from '../changes/change-triggers.ts';
import type { Connection } from '../postgres-pool/connection.ts';
import { COMPUTED } from './ddl.ts';
import {
  type Check,
  type Column,
  checkedKind,
  type ForeignKey,
  type Index,
  identifier,
  type Table,
  tagOf,
} from './tables.ts';

/** A table of a schema, with the remains of interrupted steps. */
export interface PostgresTable extends Table {
  /** Checks and foreign keys that are enforced for new rows, but not validated for existing ones. */
  readonly notValid: readonly string[];
  /** Indexes whose build was interrupted. */
  readonly invalidIndexes: readonly string[];
}

/** Each query returns the name of the table first. Settings of the session must not change how values look. */
const SETTINGS = `
  SELECT set_config('datestyle', 'ISO, YMD', true), set_config('timezone', 'UTC', true),
    set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true)`;
const TABLES = `
  SELECT relname::text FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') ORDER BY relname`;
const OF_TABLES = `JOIN pg_class AS t ON t.oid = $ AND t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p')`;
const COLUMNS = `
  SELECT t.relname::text, attname::text, format_type(atttypid, atttypmod), attnotnull, attidentity::text,
    attgenerated::text, pg_get_expr(adbin, adrelid),
    (SELECT collname::text FROM pg_collation WHERE oid = attcollation), col_description(attrelid, attnum)
  FROM pg_attribute ${OF_TABLES.replace('$', 'attrelid')}
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attnum > 0 AND NOT attisdropped ORDER BY t.oid, attnum`;
const NAMES = (table: string, numbers: string) => `
  (SELECT array_agg(attname::text ORDER BY nth) FROM unnest(${numbers}) WITH ORDINALITY AS of (number, nth)
    JOIN pg_attribute ON attrelid = ${table} AND attnum = number)`;
const CONSTRAINTS = `
  SELECT t.relname::text, conname::text, contype::text, convalidated, ${NAMES('conrelid', 'conkey')},
    (SELECT relname::text FROM pg_class WHERE oid = confrelid),
    ${NAMES('confrelid', 'confkey')}, confdeltype::text, pg_get_expr(conbin, conrelid)
  FROM pg_constraint ${OF_TABLES.replace('$', 'conrelid')}
  WHERE contype IN ('p', 'c', 'f') ORDER BY conname`;
const INDEXES = `
  SELECT t.relname::text, i.relname::text, indisunique, indisvalid, indpred IS NULL AND amname = 'btree'
      AND indnkeyatts = indnatts AND NOT EXISTS (SELECT FROM unnest(indoption) AS option WHERE option <> 0),
    array(SELECT attname::text FROM generate_series(0, indnatts - 1) AS n
      LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[n] AND attnum > 0 ORDER BY n),
    array(SELECT pg_get_indexdef(indexrelid, n, false) FROM generate_series(1, indnatts::int) AS n ORDER BY n)
  FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid JOIN pg_am ON pg_am.oid = i.relam
  ${OF_TABLES.replace('$', 'indrelid')}
  WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
  ORDER BY i.relname`;

const TRIGGERS = `
  SELECT t.relname::text, tgname::text FROM pg_trigger ${OF_TABLES.replace('$', 'tgrelid')}
  WHERE NOT tgisinternal ORDER BY tgname`;

/** Reads the tables of the schema that unqualified names are created in. */
export async function readPostgresCatalogue(connection: Connection): Promise<readonly PostgresTable[]> {
  const steps = [SETTINGS, TABLES, COLUMNS, CONSTRAINTS, INDEXES, TRIGGERS].map(
    (text) => [{ text }, []] as const,
  );
  const [, tables = [], ...rest] = await connection.transaction(steps);
  const [columns, constraints, indexes, triggers] = rest.map((rows) =>
    Map.groupBy(rows, ([table]) => String(table)),
  );
  return tables.map(([name]): PostgresTable => {
    const table = String(name);
    return readTable(table, {
      columns: columns?.get(table) ?? [],
      constraints: constraints?.get(table) ?? [],
      indexes: indexes?.get(table) ?? [],
      triggers: triggers?.get(table) ?? [],
    });
  });
}

type Rows = readonly (readonly unknown[])[];

function readTable(
  name: string,
  of: Readonly<Record<'columns' | 'constraints' | 'indexes' | 'triggers', Rows>>,
): PostgresTable {
  const constraints = (type: string) => of.constraints.filter((row) => row[2] === type);
  const checks = constraints('c').flatMap(checkOf);
  return {
    name,
    columns: of.columns.map((row) => columnOf(row, checks)),
    key: (constraints('p')[0]?.[4] as readonly string[] | undefined) ?? [],
    keyName: constraints('p').map((row) => String(row[1]))[0],
    checks,
    indexes: of.indexes.filter((row) => row[3] === true).flatMap(indexOf),
    foreignKeys: constraints('f').map(foreignKeyOf),
    triggers: of.triggers.map((row) => String(row[1])).filter(isOwnTrigger),
    notValid: of.constraints.filter((row) => row[3] === false).map((row) => String(row[1])),
    invalidIndexes: of.indexes.filter((row) => row[3] === false).map((row) => String(row[1])),
  };
}

function checkOf(row: readonly unknown[]): readonly Check[] {
  const [, name, , , columns] = row;
  const tag = tagOf(String(name));
  const [column, ...more] = (columns ?? []) as readonly string[];
  return tag === undefined || column === undefined || more.length > 0
    ? []
    : [{ name: String(name), column, tag, condition: String(row[8]) }];
}

/** The names of types in the catalogue, as codecs write them. */
const TYPES: readonly (readonly [RegExp, string])[] = [
  [/^timestamp\((\d)\) with time zone$/, 'timestamptz($1)'],
  [/^numeric\((\d+),(\d+)\)$/, 'numeric($1, $2)'],
];

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/^(?:bigint|integer|smallint)$/, 'bigint'],
  [/^numeric\(\d+, (\d+)\)$/, 'decimal$1'],
  [/^(?:double precision|real)$/, 'number'],
  [/^timestamptz.*$/, 'timestamp'],
  [/^bytea$/, 'bytes'],
  [/^(boolean|date|uuid|json)$/, '$1'],
  [/^.*$/, 'text'],
];

function replaced(text: string, table: readonly (readonly [RegExp, string])[]): string {
  const [pattern, form] = table.find(([each]) => each.test(text)) ?? [/$^/, ''];
  return text.replace(pattern, form);
}

function columnOf(row: readonly unknown[], checks: readonly Check[]): Column {
  const [, name, catalogueType, isRequired, identity, generated, expression, collation, note] = row;
  const plainType = replaced(String(catalogueType), TYPES);
  const isForeign = collation !== null && collation !== 'C';
  const type = isForeign ? `${plainType} COLLATE ${identifier(String(collation))}` : plainType;
  const hasDefault = expression !== null && generated === '';
  return {
    name: String(name),
    type,
    kind: checkedKind(String(name), checks) ?? replaced(type, KINDS),
    nullable: isRequired !== true,
    default: hasDefault ? canonicalDefault(type, String(expression)) : undefined,
    ...(generated !== '' && { computed: computedOf(String(expression), note) }),
    identity: identity === 'a' ? 'always' : identity === 'd' ? 'by default' : undefined,
  };
}

/** The expression of a generated column: as it was declared if Portico made the column. */
function computedOf(expression: string, note: unknown): string {
  const text = String(note ?? '');
  return text.startsWith(COMPUTED) ? text.slice(COMPUTED.length) : expression;
}

const LITERAL =
  /^(?:'((?:[^']|'')*)'|(-?[\d.]+(?:e[+-]?\d+)?|true|false))(?:::[\w ]+(?:\([\d,]+\))?(?: with(?:out)? time zone)?)?$/i;

/** The value of a constant as a text; any other expression as it is. */
function canonicalDefault(type: string, expression: string): string {
  const [, quoted, bare] = LITERAL.exec(expression) ?? [];
  const text = quoted?.replaceAll("''", "'") ?? bare;
  if (text === undefined) return expression;
  if (type === 'double precision') return String(Number(text));
  if (!type.startsWith('timestamptz')) return text;
  const at = Date.parse(`${text.replace(' ', 'T')}:00`);
  return Number.isNaN(at) ? text : new Date(at).toISOString();
}

function indexOf(row: readonly unknown[]): readonly Index[] {
  const [, name, isUnique, , isPlain] = row;
  if (isPlain !== true) return [];
  const names = row[5] as readonly (string | null)[];
  const definitions = row[6] as readonly string[];
  const columns = names.map((column, at) => {
    if (column !== null) return { name: column, fold: false };
    const folded = foldedColumn(definitions[at] ?? '');
    return folded === undefined ? undefined : { name: folded, fold: true };
  });
  if (columns.includes(undefined)) return [];
  return [
    {
      name: String(name),
      isUnique: isUnique === true,
      columns: columns.filter((each) => each !== undefined),
    },
  ];
}

/** As the server writes `lower(name COLLATE "C")` of a column with that collation. */
const FOLDED = /^lower\(\(?(?:"((?:[^"]|"")+)"|([a-z_]\w*))(?: COLLATE "C")?\)?\)$/;

/** The column whose texts an index has without the case of A to Z; undefined for another expression. */
export function foldedColumn(definition: string): string | undefined {
  const folded = FOLDED.exec(definition);
  return folded === null ? undefined : (folded[1]?.replaceAll('""', '"') ?? folded[2]);
}

const ON_DELETE: Readonly<Record<string, ForeignKey['onDelete']>> = { c: 'cascade', n: 'null' };

function foreignKeyOf(row: readonly unknown[]): ForeignKey {
  return {
    name: String(row[1]),
    columns: (row[4] ?? []) as readonly string[],
    table: String(row[5]),
    targetColumns: (row[6] ?? []) as readonly string[],
    onDelete: ON_DELETE[String(row[7])] ?? 'restrict',
  };
}
