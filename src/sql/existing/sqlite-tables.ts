import { isOwnTrigger } from '../changes/change-triggers.ts';
import type { SchemaSession } from '../schema/steps.ts';
import type { FoundCheck, FoundColumn, FoundIndex, FoundReference, FoundTable } from './found.ts';

const TABLES = `
  FROM pragma_table_list AS t JOIN sqlite_schema AS made ON made.name = t.name JOIN $ AS of
  WHERE t.schema = 'main' AND t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`;
const of = (what: string) => TABLES.replace('$', what);
const COLUMNS = `
  SELECT t.name, of.name, of.type, "notnull", dflt_value, pk, hidden ${of('pragma_table_xinfo(t.name)')} ORDER BY t.name, cid`;
const INDEXES = `
  SELECT t.name, of.name, "unique", origin, partial, x.name, "desc", coll
  ${of('pragma_index_list(t.name)').replace('AS of', 'AS of JOIN pragma_index_xinfo(of.name) AS x')}
    AND key = 1 ORDER BY t.name, of.name, seqno`;
const REFERENCES = `
  SELECT t.name, id, "table", "from", "to", on_delete ${of('pragma_foreign_key_list(t.name)')} ORDER BY t.name, id, of.seq`;
const TRIGGERS = `SELECT tbl_name, name FROM sqlite_schema WHERE type = 'trigger'`;

type Rows = readonly (readonly unknown[])[];

/** Reads the tables and views of a file. */
export async function readSqliteTables(session: Pick<SchemaSession, 'rows'>): Promise<readonly FoundTable[]> {
  const tables = await session.rows(`SELECT t.name, t.type, made.sql ${of('(SELECT 1)')} ORDER BY t.name`);
  const grouped = async (sql: string) => Map.groupBy(await session.rows(sql), ([table]) => table);
  const columns = await grouped(COLUMNS);
  const indexes = await grouped(INDEXES);
  const references = await grouped(REFERENCES);
  const triggers = await grouped(TRIGGERS);
  const keys = new Map(tables.map(([name]) => [String(name), keyOf(columns.get(name) ?? [])]));
  return tables.map(([name, type, sql]): FoundTable => {
    const definition = new Definition(String(sql));
    const own = columns.get(name) ?? [];
    const found = indexes.get(name) ?? [];
    return {
      name: String(name),
      isView: type === 'view',
      hasDigest: true,
      columns: own.map((row) => columnOf(row, own, definition)),
      key: keyOf(own),
      indexes: indexesOf(found, definition),
      references: referencesOf(references.get(name) ?? [], keys, definition),
      checks: definition.checks(own.map((row) => String(row[1]))),
      isRecorded: (triggers.get(name) ?? []).some(([, trigger]) => isOwnTrigger(String(trigger))),
    };
  });
}

function keyOf(columns: Rows): readonly string[] {
  return columns
    .filter((row) => Number(row[5]) > 0)
    .toSorted((a, b) => Number(a[5]) - Number(b[5]))
    .map((row) => String(row[1]));
}

function columnOf(row: readonly unknown[], all: Rows, definition: Definition): FoundColumn {
  const [, name, type, isRequired, standard, part, hidden] = row;
  const isKey = Number(part) > 0;
  // The number of a row.
  const isRowid = isKey && keyOf(all).length === 1 && String(type).toUpperCase() === 'INTEGER';
  return {
    name: String(name),
    type: String(type),
    collation: definition.folds(String(name)) ? 'fold' : 'bytes',
    nullable: Number(isRequired) === 0 && !isKey,
    default: standard === null ? undefined : String(standard),
    isGenerated: Number(hidden) > 1,
    numbered: isRowid && !definition.has('WITHOUT', 'ROWID') ? numberedBy(definition) : undefined,
  };
}

/** A number that is never used again is one of the database, although rows may bring one. */
const numberedBy = (definition: Definition) => (definition.has('AUTOINCREMENT') ? 'always' : 'by default');

function indexesOf(rows: Rows, definition: Definition): readonly FoundIndex[] {
  const found = Map.groupBy(
    rows.filter((row) => row[3] !== 'pk'),
    (row) => String(row[1]),
  );
  return [...found].map(([name, columns]): FoundIndex => {
    const isWhole = columns.every((row) => row[5] !== null && Number(row[6]) === 0 && Number(row[4]) === 0);
    const folded = columns.flatMap((row) =>
      row[7] === 'NOCASE' && !definition.folds(String(row[5])) ? [String(row[5])] : [],
    );
    return {
      name,
      columns: columns.flatMap((row) => (row[5] === null ? [] : [String(row[5])])),
      isUnique: Number(columns[0]?.[2]) === 1,
      isPlain: isWhole,
      folded,
    };
  });
}

const ON_DELETE: Readonly<Record<string, FoundReference['onDelete']>> = {
  CASCADE: 'cascade',
  'SET NULL': 'null',
};

function referencesOf(
  rows: Rows,
  keys: ReadonlyMap<string, readonly string[]>,
  definition: Definition,
): readonly FoundReference[] {
  const groups = Map.groupBy(rows, (row) => row[1]);
  return [...groups.values()].reverse().map((parts): FoundReference => {
    const columns = parts.map((row) => String(row[3]));
    // SQLite ignores the case of names.
    const written = String(parts[0]?.[2]);
    const table = [...keys.keys()].find((name) => name.toLowerCase() === written.toLowerCase()) ?? written;
    const key = keys.get(table) ?? [];
    return {
      name: definition.referenceName(columns),
      columns,
      table,
      schema: undefined,
      targetColumns: parts.map((row, i) => String(row[4] ?? key[i])),
      onDelete: ON_DELETE[String(parts[0]?.[5])] ?? 'restrict',
    };
  });
}

/** A token of SQL: a quoted name, a text, a word, a number or another sign. */
const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[xX]?'(?:[^']|'')*'|[\w$\u0080-\uffff]+|\S/g;

/** The text of a CREATE TABLE, which alone has the names of constraints and their conditions. */
class Definition {
  readonly #tokens: readonly { readonly text: string; readonly at: number }[];
  readonly #sql: string;

  constructor(sql: string) {
    this.#sql = sql;
    this.#tokens = Array.from(sql.matchAll(TOKEN), ({ 0: text, index }) => ({ text, at: index })).filter(
      ({ text }) => !text.startsWith('--') && !text.startsWith('/*'),
    );
  }

  #is(at: number, ...words: readonly string[]): boolean {
    return words.every((word, i) => this.#tokens[at + i]?.text.toUpperCase() === word);
  }

  #nameAt(at: number): string {
    return unquoted(this.#tokens[at]?.text ?? '');
  }

  /** The place of the parenthesis that closes the one at a place. */
  #closing(at: number): number {
    let depth = 0;
    for (let i = at; i < this.#tokens.length; i++) {
      if (this.#is(i, '(')) depth++;
      else if (this.#is(i, ')') && --depth === 0) return i;
    }
    return this.#tokens.length - 1;
  }

  has(...words: readonly string[]): boolean {
    return this.#tokens.some((_, i) => this.#is(i, ...words));
  }

  /** The conditions of the table, each with those of the columns that it names. */
  checks(columns: readonly string[]): readonly FoundCheck[] {
    return this.#tokens.flatMap((_, i): readonly FoundCheck[] => {
      if (!this.#is(i, 'CHECK', '(')) return [];
      const end = this.#closing(i + 1);
      const inside = this.#tokens.slice(i + 2, end);
      const words = inside.map(({ text }) => unquoted(text).toLowerCase());
      return [
        {
          name: this.#is(i - 2, 'CONSTRAINT') ? this.#nameAt(i - 1) : undefined,
          expression: this.#sql.slice(inside[0]?.at ?? 0, this.#tokens[end]?.at).trim(),
          columns: columns.filter((name) => words.includes(name.toLowerCase())),
        },
      ];
    });
  }

  /** The name of the foreign key of some columns; undefined if it has none. */
  referenceName(columns: readonly string[]): string | undefined {
    const wanted = columns.join().toLowerCase();
    for (const [i] of this.#tokens.entries()) {
      if (!this.#is(i, 'CONSTRAINT') || !this.#is(i + 2, 'FOREIGN', 'KEY', '(')) continue;
      const inside = this.#tokens.slice(i + 5, this.#closing(i + 4));
      const names = inside.filter(({ text }) => text !== ',').map(({ text }) => unquoted(text));
      if (names.join().toLowerCase() === wanted) return this.#nameAt(i + 1);
    }
    return undefined;
  }

  /** Whether a column compares texts without the case of A to Z. */
  folds(column: string): boolean {
    const isStart = (i: number) => i === 0 || this.#is(i - 1, '(') || this.#is(i - 1, ',');
    const start = this.#tokens.findIndex(
      (_, i) => this.#nameAt(i).toLowerCase() === column.toLowerCase() && isStart(i),
    );
    for (let i = start; start !== -1 && i < this.#tokens.length && !this.#is(i, ','); i++) {
      if (this.#is(i, '(')) i = this.#closing(i);
      else if (this.#is(i, 'COLLATE', 'NOCASE')) return true;
    }
    return false;
  }
}

/** A name without its quotes, of which SQLite takes four kinds. */
function unquoted(text: string): string {
  const [first = ''] = text;
  if (first === '[') return text.slice(1, -1);
  if (first !== '"' && first !== '`' && first !== "'") return text;
  return text.slice(1, -1).replaceAll(first + first, first);
}
