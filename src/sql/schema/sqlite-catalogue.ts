import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { isOwnTrigger } from '../changes/change-triggers.ts';
import {
  type Check,
  type Column,
  checkedKind,
  type ForeignKey,
  type Index,
  identifier,
  objectName,
  type Table,
  tagOf,
} from './tables.ts';

/** A table of a file, with what a rebuild must restore. */
export interface SqliteTable extends Table {
  /** The statements that made the indexes and triggers that are not in `indexes`. */
  readonly others: readonly string[];
  /** Why a rebuild would lose something; undefined if it does not. */
  readonly obstacle: string | undefined;
}

/** What the catalogue has of the tables, by the name of the table; the number of statements is fixed. */
const TABLES = `
  FROM sqlite_schema AS t JOIN $ AS of
  WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.sql IS NOT NULL`;
const COLUMNS = `
  SELECT t.name AS "of table", of.name, of.type, "notnull", dflt_value, pk, hidden
  ${TABLES.replace('$', 'pragma_table_xinfo(t.name)')} ORDER BY t.name, cid`;
const INDEXES = `
  SELECT t.name AS "of table", of.name AS "index", "unique", x.name, "desc", coll
  ${TABLES.replace('$', 'pragma_index_list(t.name)').replace('AS of', 'AS of JOIN pragma_index_xinfo(of.name) AS x')}
    AND origin = 'c' AND partial = 0 AND key = 1 ORDER BY t.name, of.seq, seqno`;
const FOREIGN_KEYS = `
  SELECT t.name AS "of table", id, "table", "from", "to", on_delete
  ${TABLES.replace('$', 'pragma_foreign_key_list(t.name)')} ORDER BY t.name, id, of.seq`;
const OTHERS = `
  SELECT t.name AS "of table", of.name, of.sql ${TABLES.replace('$', 'sqlite_schema')}
    AND of.tbl_name = t.name AND of.type IN ('index', 'trigger') AND of.sql IS NOT NULL ORDER BY of.rowid`;

type Rows = readonly Record<string, SQLOutputValue>[];

/** Reads the tables of a file. */
export function readSqliteCatalogue(db: DatabaseSync): readonly SqliteTable[] {
  const rows = (sql: string): Rows => db.prepare(sql).all();
  const [columns, indexes, foreignKeys, others] = [COLUMNS, INDEXES, FOREIGN_KEYS, OTHERS].map((sql) =>
    Map.groupBy(rows(sql), (row) => String(row['of table'])),
  );
  return rows(`SELECT t.name, t.sql ${TABLES.replace('$', '(SELECT 1)')}`).map(({ name, sql }) => {
    const table = String(name);
    return readTable(table, String(sql), {
      columns: columns?.get(table) ?? [],
      indexes: indexes?.get(table) ?? [],
      foreignKeys: foreignKeys?.get(table) ?? [],
      others: others?.get(table) ?? [],
    });
  });
}

function readTable(
  table: string,
  sql: string,
  of: Readonly<Record<'columns' | 'indexes' | 'foreignKeys' | 'others', Rows>>,
): SqliteTable {
  const { columns, others } = of;
  const checks = checksOf(sql);
  const isNumbered = /\bAUTOINCREMENT\b/i.test(withoutTexts(sql));
  const key = columns
    .filter(({ pk }) => Number(pk) > 0)
    .toSorted((a, b) => Number(a.pk) - Number(b.pk))
    .map(({ name }) => String(name));
  const indexes = indexesOf(of.indexes);
  const own = new Set(indexes.map(({ name }) => name));
  return {
    name: table,
    columns: columns.map((column): Column => {
      const name = String(column.name);
      const type = String(column.type).toUpperCase();
      const isSerial = isNumbered && key.length === 1 && key[0] === name;
      return {
        name,
        type,
        kind: checkedKind(name, checks) ?? kindOf(type),
        nullable: Number(column.notnull) === 0 && !isSerial,
        default: column.dflt_value === null ? undefined : String(column.dflt_value),
        identity: isSerial ? 'by default' : undefined,
        ...(Number(column.hidden) !== 0 && { computed: computedOf(sql, name) }),
      };
    }),
    key,
    keyName: undefined,
    checks,
    indexes,
    foreignKeys: foreignKeysOf(table, sql, of.foreignKeys),
    others: others
      .filter(({ name }) => !own.has(String(name)) && !isOwnTrigger(String(name)))
      .map(({ sql }) => String(sql)),
    triggers: others.map(({ name }) => String(name)).filter(isOwnTrigger),
    obstacle: obstacleOf(sql, checks.length, columns),
  };
}

/** The kind of a column that has no check of ours, by the rules of sqlite.org/datatype3.html. */
function kindOf(type: string): string {
  if (type.includes('INT')) return 'bigint';
  if (/CHAR|CLOB|TEXT/.test(type)) return 'text';
  if (type === '' || type.includes('BLOB')) return 'bytes';
  return 'number';
}

const OWN_CHECK = /CONSTRAINT "((?:[^"]|"")+)" CHECK \([^"']*"((?:[^"]|"")+)"/g;
const unquoted = (name: string) => name.replaceAll('""', '"');

/** The checks that have our names. SQLite keeps the text of a table, and renames columns in it. */
function checksOf(sql: string): readonly Check[] {
  return [...sql.matchAll(OWN_CHECK)].flatMap(({ 0: text, 1: name = '', 2: column = '', index }) => {
    const tag = tagOf(unquoted(name));
    if (tag === undefined) return [];
    const condition = clauseFrom(sql, index + text.indexOf('" CHECK (') + '" CHECK ('.length);
    return [{ name: unquoted(name), column: unquoted(column), tag, condition }];
  });
}

/** The expression of a column that we generate, from the text of its table; empty for one of others. */
function computedOf(sql: string, column: string): string {
  const [head, ...others] = ['TEXT', 'INTEGER', 'INT'].flatMap((type) => {
    const text = `${identifier(column)} ${type} GENERATED ALWAYS AS (`;
    return sql.includes(text) ? [text] : [];
  });
  if (head === undefined || others.length > 0) return '';
  const start = sql.indexOf(head) + head.length;
  const found = clauseFrom(sql, start);
  return sql.startsWith(') STORED', start + found.length) ? found : '';
}

/** The text from a place after an opening parenthesis up to the closing one. */
function clauseFrom(sql: string, start: number): string {
  const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]/g;
  token.lastIndex = start;
  for (let depth = 1; depth > 0; ) {
    const found = token.exec(sql)?.[0];
    if (found === undefined) return sql.slice(start);
    depth += found === '(' ? 1 : found === ')' ? -1 : 0;
  }
  return sql.slice(start, token.lastIndex - 1);
}

/** The text of a table without its quoted names, texts and comments. */
function withoutTexts(sql: string): string {
  return sql.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\//g, '?');
}

function obstacleOf(
  sql: string,
  checks: number,
  columns: readonly Record<string, unknown>[],
): string | undefined {
  const words = withoutTexts(sql);
  if ((words.match(/\bCHECK\b/gi)?.length ?? 0) > checks) return 'it has a CHECK of its own';
  if (columns.some(({ name, hidden }) => Number(hidden) !== 0 && computedOf(sql, String(name)) === ''))
    return 'it has a generated column';
  if (/\bWITHOUT\s+ROWID\b/i.test(words)) return 'it is WITHOUT ROWID';
  return undefined;
}

/** The indexes by columns alone; others have expressions or conditions, or belong to a constraint. */
function indexesOf(rows: Rows): readonly Index[] {
  const found = Map.groupBy(rows, ({ index }) => String(index));
  return [...found].flatMap(([name, columns]): readonly Index[] => {
    const isOther = columns.some(
      (column) =>
        column.name === null || column.desc !== 0 || !['BINARY', 'NOCASE'].includes(String(column.coll)),
    );
    if (isOther) return [];
    return [
      {
        name,
        isUnique: Number(columns[0]?.unique) === 1,
        columns: columns.map((column) => ({ name: String(column.name), fold: column.coll === 'NOCASE' })),
      },
    ];
  });
}

const ON_DELETE: Readonly<Record<string, ForeignKey['onDelete']>> = {
  CASCADE: 'cascade',
  'SET NULL': 'null',
};

/**
 * SQLite does not tell the names of foreign keys, so that they get one by their columns: that of ours if the
 * text of the table has a reference of ours with these columns.
 */
function foreignKeysOf(table: string, sql: string, rows: Rows): readonly ForeignKey[] {
  const own = new Set([...sql.matchAll(OWN_REFERENCE)].map(([, added, listed]) => listed ?? `"${added}"`));
  const groups = Map.groupBy(rows, ({ id }) => id);
  return [...groups.values()].map((parts): ForeignKey => {
    const columns = parts.map(({ from }) => String(from));
    return {
      name: own.has(columns.map(identifier).join(', '))
        ? objectName(table, 'reference', columns)
        : `${table}_${columns.join('_')}_fkey`,
      columns,
      table: String(parts[0]?.table),
      targetColumns: parts.map(({ to }) => String(to)),
      onDelete: ON_DELETE[String(parts[0]?.on_delete)] ?? 'restrict',
    };
  });
}

/** Our references with the column that was added with it, or with the columns as they are listed. */
const OWN_REFERENCE =
  /(?:"((?:[^"]|"")+)" (?:INTEGER|TEXT|REAL|BLOB)\b(?:'[^']*'|[^,'])*)?CONSTRAINT "(?:[^"]|"")*(?:__reference__(?:[^"]|"")*|_[0-9a-f]{8})" (?:REFERENCES|FOREIGN KEY \(((?:"(?:[^"]|"")+"(?:, )?)+)\))/g;
