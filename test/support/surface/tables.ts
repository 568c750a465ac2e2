import { DatabaseSync } from 'node:sqlite';

/** Runs a statement; resolves to its rows. */
type Query = (sql: string) => Promise<readonly (readonly unknown[])[]>;

/** A table, function or other object of the schema, with its parts line by line. */
interface Part {
  readonly title: string;
  readonly lines: readonly string[];
}

/** Describes an SQLite file: its tables with columns, constraints, indexes, triggers and numbers of rows. */
export function describeSqlite(file: string): string {
  using database = new DatabaseSync(file, { readOnly: true });
  const rows = (sql: string) => {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    return statement.all() as unknown as readonly (readonly unknown[])[];
  };
  const pragmas = ['application_id', 'user_version', 'encoding', 'page_size', 'auto_vacuum', 'journal_mode'];
  const settings = pragmas.map((name) => `${name} = ${rows(`PRAGMA ${name}`)[0]?.[0]}`);
  // The tables that a full-text index keeps are SQLite's own.
  const hidden = new Set(
    rows("SELECT name FROM pragma_table_list WHERE type = 'shadow'").map(([name]) => name),
  );
  const made = rows('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name')
    .filter(([, name]) => !hidden.has(name) && !String(name).startsWith('sqlite_'))
    .map(([type, name, table, sql]) => ({
      type: String(type),
      name: String(name),
      table: String(table),
      sql: tidy(String(sql)),
    }));
  const parts = made
    .filter(({ type }) => !isAddition(type))
    .map(({ type, name, sql }) => {
      const [items, options] = /^CREATE TABLE/.test(sql) ? split(sql) : [];
      const [{ count } = { count: 0 }] = database.prepare(`SELECT count(*) AS count FROM "${name}"`).all();
      const added = made.filter((each) => each.table === name && isAddition(each.type));
      return {
        title: items === undefined ? sql : `${type} ${name}${options}`,
        lines: [...(items ?? []), ...added.flatMap((each) => statements(each.sql)), ...rowLine(count)],
      };
    });
  return render([{ title: 'file', lines: settings }, ...parts]);
}

function isAddition(type: string): boolean {
  return type === 'index' || type === 'trigger';
}

/** Splits the definition of a table into its columns and constraints, and the options at its end. */
function split(sql: string): readonly [readonly string[], string] {
  const items: string[] = [];
  let depth = 0;
  let from = sql.indexOf('(') + 1;
  for (const { 0: token, index } of sql.matchAll(/'[^']*'|"[^"]*"|[(),]/g)) {
    if (token === '(') depth++;
    if (token === ')') depth--;
    if ((token === ',' && depth === 1) || (token === ')' && depth === 0)) {
      items.push(sql.slice(from, index).trim());
      from = index + 1;
      if (depth === 0) return [items, sql.slice(from)];
    }
  }
  throw new Error(`the definition of a table does not end: ${sql}`);
}

/** A definition on one line, without comments and needless quotes. */
function tidy(sql: string): string {
  return sql
    .replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\s+/g, (token) => {
      if (token.startsWith('"')) return /^"[a-z_]+"$/.test(token) ? token.slice(1, -1) : token;
      return token.startsWith("'") ? token : ' ';
    })
    .replace(/'(?:[^']|'')*'| +/g, (token) => (token.startsWith("'") ? token : ' '))
    .replace(/\( /g, '(')
    .replace(/ ([),;])/g, '$1')
    .trim();
}

/** A definition of several statements, each on its line. */
function statements(sql: string): readonly string[] {
  const [first = '', ...others] = sql.split(/(?<=;|\bBEGIN|\$function\$) /);
  return [first, ...others.map((line) => `  ${line}`)];
}

function rowLine(count: unknown): readonly string[] {
  return Number(count) === 0 ? [] : [`rows after the first start: ${count}`];
}

function render(parts: readonly Part[]): string {
  return parts
    .map(({ title, lines }) => [title, ...lines.map((line) => `  ${line}`)].join('\n'))
    .join('\n\n');
}

const NAMESPACE = `(SELECT oid FROM pg_namespace WHERE nspname = current_schema())`;
/** Leaves out the objects of extensions. */
const NOT_EXTENDED = (oid: string) =>
  `NOT EXISTS (SELECT FROM pg_depend WHERE objid = ${oid} AND deptype = 'e')`;

const TABLES = `SELECT oid::text, relname, relkind, relpersistence, array_to_string(reloptions, ', '),
    pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid), relispartition, relreplident, relrowsecurity,
    (SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = pg_class.oid)
  FROM pg_class WHERE relnamespace = ${NAMESPACE} AND relkind IN ('r', 'p', 'v', 'm', 'f')
    AND ${NOT_EXTENDED('pg_class.oid')}
  ORDER BY relname COLLATE "C"`;

const COLUMNS = `SELECT attrelid::text, concat_ws(' ', attname, format_type(atttypid, atttypmod),
      CASE WHEN attcollation <> typcollation THEN 'COLLATE ' || attcollation::regcollation END,
      CASE WHEN attstorage <> typstorage THEN 'STORAGE ' || attstorage::text END,
      CASE WHEN attcompression <> '' THEN 'COMPRESSION ' || attcompression::text END,
      CASE WHEN attnotnull THEN 'NOT NULL' END,
      CASE attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END,
      CASE WHEN attgenerated <> '' THEN 'GENERATED ' || attgenerated::text END,
      'DEFAULT ' || pg_get_expr(adbin, adrelid))
  FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE relnamespace = ${NAMESPACE} AND relkind IN ('r', 'p', 'v', 'm', 'f') AND attnum > 0 AND NOT attisdropped
  ORDER BY attrelid, attnum`;

/** Without NOT NULL, which is part of the columns; newer servers list it as a constraint too. */
const CONSTRAINTS = `SELECT conrelid::text, concat_ws(' ', 'CONSTRAINT', conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = ${NAMESPACE} AND conrelid <> 0 AND contype NOT IN ('n', 't')
  ORDER BY conname COLLATE "C"`;

const INDEXES = `SELECT indrelid::text, pg_get_indexdef(indexrelid) || CASE WHEN indisvalid THEN '' ELSE ' (invalid)' END
  FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
  WHERE relnamespace = ${NAMESPACE} AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
  ORDER BY relname COLLATE "C"`;

const TRIGGERS = `SELECT tgrelid::text, pg_get_triggerdef(pg_trigger.oid)
  FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
  WHERE relnamespace = ${NAMESPACE} AND NOT tgisinternal ORDER BY tgname COLLATE "C"`;

const FUNCTIONS = `SELECT pg_get_functiondef(oid) FROM pg_proc
  WHERE pronamespace = ${NAMESPACE} AND prokind IN ('f', 'p') AND ${NOT_EXTENDED('pg_proc.oid')}
  ORDER BY proname COLLATE "C", pg_get_function_identity_arguments(oid)`;

const SEQUENCES = `SELECT concat_ws(' ', 'sequence', relname, 'AS', format_type(seqtypid, NULL), 'START', seqstart,
    'INCREMENT', seqincrement, 'MINVALUE', seqmin, 'MAXVALUE', seqmax, 'CACHE', seqcache,
    CASE WHEN seqcycle THEN 'CYCLE' END)
  FROM pg_sequence JOIN pg_class ON oid = seqrelid WHERE relnamespace = ${NAMESPACE} ORDER BY relname COLLATE "C"`;

const OTHERS = `SELECT 'type ' || typname || ' ' || typtype::text || ' ' || coalesce(format_type(nullif(typbasetype, 0), typtypmod),
      (SELECT string_agg(enumlabel, ', ' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = pg_type.oid), '')
    FROM pg_type WHERE typnamespace = ${NAMESPACE} AND typtype IN ('e', 'd', 'r') AND ${NOT_EXTENDED('pg_type.oid')}
  UNION ALL SELECT 'extension ' || extname FROM pg_extension WHERE extname <> 'plpgsql' ORDER BY 1`;

/** Describes the current schema of a PostgreSQL database: tables as for SQLite, functions, sequences, types and extensions. */
export async function describePostgres(query: Query): Promise<string> {
  const byTable = async (sql: string) => Map.groupBy(await query(sql), ([table]) => String(table));
  const schema = String((await query('SELECT current_schema()'))[0]?.[0]);
  const plain = (text: unknown) => tidy(String(text)).replaceAll(`${schema}.`, '');
  const added = [
    await byTable(COLUMNS),
    await byTable(CONSTRAINTS),
    await byTable(INDEXES),
    await byTable(TRIGGERS),
  ];
  const parts: Part[] = [];
  for (const [
    oid,
    name,
    kind,
    persistence,
    options,
    key,
    bound,
    isPartition,
    identity,
    security,
    parent,
  ] of await query(TABLES)) {
    const words = [
      kind === 'r' || kind === 'p' ? 'table' : `relation "${kind}"`,
      String(name),
      persistence === 'p' ? undefined : `PERSISTENCE "${persistence}"`,
      isPartition ? `PARTITION OF ${plain(parent)} ${bound}` : undefined,
      key === null ? undefined : `PARTITION BY ${key}`,
      options === null ? undefined : `WITH (${options})`,
      identity === 'd' ? undefined : `REPLICA IDENTITY "${identity}"`,
      security ? 'ROW LEVEL SECURITY' : undefined,
    ];
    const [[count] = []] = await query(`SELECT count(*) FROM "${name}"`);
    const items = added.flatMap((found) => found.get(String(oid)) ?? []).map(([, text]) => plain(text));
    parts.push({
      title: words.filter((word) => word !== undefined).join(' '),
      // A partition has what its table has.
      lines: [...(isPartition ? [] : items), ...rowLine(count)],
    });
  }
  const functions = (await query(FUNCTIONS)).map(([text]) => {
    const [title = '', ...lines] = statements(plain(text));
    return { title, lines: lines.map((line) => line.trim()) };
  });
  const others = [...(await query(SEQUENCES)), ...(await query(OTHERS))].map(([text]) => ({
    title: plain(text),
    lines: [],
  }));
  return render([...parts, ...functions, ...others]);
}

/** The lines that one description has and another has not. */
export function addedLines(before: string, after: string): readonly string[] {
  const known = new Set(before.split('\n'));
  return after.split('\n').filter((line) => !known.has(line));
}
