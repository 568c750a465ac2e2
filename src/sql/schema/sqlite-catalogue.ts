import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import {
  type Check,
  type Column,
  checkedKind,
  type ForeignKey,
  type Index,
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

/** Reads the tables of a file. */
export function readSqliteCatalogue(db: DatabaseSync): readonly SqliteTable[] {
  const rows = (sql: string, ...values: readonly SQLInputValue[]) => db.prepare(sql).all(...values);
  const tables = rows(
    `SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql IS NOT NULL`,
  );
  return tables.map(({ name, sql }) => readTable(rows, String(name), String(sql)));
}

type Rows = (sql: string, ...values: readonly SQLInputValue[]) => readonly Record<string, unknown>[];

function readTable(rows: Rows, table: string, sql: string): SqliteTable {
  const columns = rows(
    'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
    table,
  );
  const checks = checksOf(sql);
  const isNumbered = /\bAUTOINCREMENT\b/i.test(withoutTexts(sql));
  const key = columns
    .filter(({ pk }) => Number(pk) > 0)
    .toSorted((a, b) => Number(a.pk) - Number(b.pk))
    .map(({ name }) => String(name));
  const indexes = indexesOf(rows, table);
  const own = new Set(indexes.map(({ name }) => name));
  const others = rows(
    `SELECT name, sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL`,
    table,
  );
  return {
    name: table,
    columns: columns.map((column): Column => {
      const name = String(column.name);
      const type = String(column.type).toUpperCase();
      const isSerial = isNumbered && key.length === 1 && key[0] === name;
      return {
        name,
        type,
        kind: checkedKind(name, checks) ?? KINDS[type] ?? 'text',
        nullable: Number(column.notnull) === 0 && !isSerial,
        default: column.dflt_value === null ? undefined : String(column.dflt_value),
        identity: isSerial ? 'by default' : undefined,
      };
    }),
    key,
    keyName: undefined,
    checks,
    indexes,
    foreignKeys: foreignKeysOf(rows, table),
    others: others.filter(({ name }) => !own.has(String(name))).map(({ sql }) => String(sql)),
    obstacle: obstacleOf(sql, checks.length, columns),
  };
}

/** The kind of a column that has no check of ours. */
const KINDS: Readonly<Record<string, string>> = {
  INT: 'bigint',
  INTEGER: 'bigint',
  REAL: 'number',
  BLOB: 'bytes',
};

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
  if (columns.some(({ hidden }) => Number(hidden) !== 0)) return 'it has a generated column';
  if (/\bWITHOUT\s+ROWID\b/i.test(words)) return 'it is WITHOUT ROWID';
  return undefined;
}

/** The indexes by columns alone; others have expressions or conditions, or belong to a constraint. */
function indexesOf(rows: Rows, table: string): readonly Index[] {
  const found = rows(
    `SELECT name, "unique" FROM pragma_index_list(?) WHERE origin = 'c' AND partial = 0`,
    table,
  );
  return found.flatMap(({ name, unique }): readonly Index[] => {
    const columns = rows(
      'SELECT name, "desc", coll FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno',
      String(name),
    );
    const isOther = columns.some(
      (column) =>
        column.name === null || column.desc !== 0 || !['BINARY', 'NOCASE'].includes(String(column.coll)),
    );
    if (isOther) return [];
    return [
      {
        name: String(name),
        isUnique: Number(unique) === 1,
        columns: columns.map((column) => ({ name: String(column.name), fold: column.coll === 'NOCASE' })),
      },
    ];
  });
}

const ON_DELETE: Readonly<Record<string, ForeignKey['onDelete']>> = {
  CASCADE: 'cascade',
  'SET NULL': 'null',
};

/** SQLite does not tell the names of foreign keys; theirs are those of their columns. */
function foreignKeysOf(rows: Rows, table: string): readonly ForeignKey[] {
  const found = rows(
    'SELECT id, "table", "from", "to", on_delete FROM pragma_foreign_key_list(?) ORDER BY id, seq',
    table,
  );
  const groups = Map.groupBy(found, ({ id }) => id);
  return [...groups.values()].map((parts): ForeignKey => {
    const columns = parts.map(({ from }) => String(from));
    return {
      name: objectName(table, 'reference', columns),
      columns,
      table: String(parts[0]?.table),
      targetColumns: parts.map(({ to }) => String(to)),
      onDelete: ON_DELETE[String(parts[0]?.on_delete)] ?? 'restrict',
    };
  });
}
