import { codecOf } from '../../relations/codecs.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import type { Diff, TableDiff } from '../schema/diff.ts';
import { type Step, step } from '../schema/steps.ts';
import {
  type DeclaredTable,
  digest,
  type Engine,
  identifier,
  type Table,
  textLiteral,
} from '../schema/tables.ts';

/** The table with the changes of all relations. */
export const EVENT_TABLES = {
  events: 'relation_events',
  feed: 'relation_feed',
  relay: 'relation_relay',
} as const;
const { events, feed, relay } = EVENT_TABLES;

const NOW = {
  sqlite: `CAST(unixepoch('subsec') * 1000 AS INTEGER)`,
  postgres: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
} as const;

/** A setting of PostgreSQL. While a migration has it on in a transaction, the triggers record nothing. */
export const UNRECORDED = 'portico.unrecorded';

/**
 * The log of changes, in the form of that of users (see the first migration). The newest event is never
 * removed; the first one, `start`, has no row. `bytes` names the members of the row that are in hexadecimal
 * digits, because SQLite cannot write base64.
 */
const LOG: Readonly<Record<Engine, readonly string[]>> = {
  sqlite: [
    `CREATE TABLE ${events} (
  position INTEGER PRIMARY KEY,
  relation TEXT NOT NULL,
  type TEXT NOT NULL,
  at INTEGER NOT NULL,
  "row" TEXT NOT NULL,
  bytes TEXT
) STRICT`,
    `INSERT INTO ${events} (relation, type, at, "row") VALUES ('', 'start', ${NOW.sqlite}, '{}')`,
    `CREATE TABLE ${relay} (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  moved_at INTEGER NOT NULL
) STRICT`,
  ],
  postgres: [
    `CREATE TABLE ${events} (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
  position BIGINT,
  relation TEXT NOT NULL,
  type TEXT NOT NULL,
  at BIGINT NOT NULL,
  "row" TEXT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.1)`,
    `CREATE UNIQUE INDEX ${events}_position ON ${events} (position) WHERE position IS NOT NULL`,
    `CREATE INDEX ${events}_waiting ON ${events} (seq) WHERE position IS NULL`,
    `INSERT INTO ${events} (position, relation, type, at, "row") VALUES (1, '', 'start', ${NOW.postgres}, '{}')`,
    `CREATE TABLE ${feed} (last BIGINT NOT NULL) WITH (fillfactor = 10)`,
    `INSERT INTO ${feed} (last) VALUES (1)`,
    `CREATE TABLE ${relay} (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  position BIGINT NOT NULL,
  at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
) WITH (fillfactor = 10)`,
  ],
};

/** A plan with the steps that create the log of changes and the triggers that write it. */
export function withChangeLog(
  engine: Engine,
  { tables }: Diff<Table>,
  catalogue: readonly Table[],
  steps: readonly Step[],
): readonly Step[] {
  const isWanted = tables.some(({ table }) => table.recorded !== undefined);
  const isThere = catalogue.some(({ name }) => name === events);
  // A rebuild replaces the triggers of a table that has some.
  const isRebuilt = ({ table, current }: TableDiff<Table>) =>
    current !== undefined &&
    current.triggers.length > 0 &&
    steps.some((each) => each.isRebuild === true && each.table === table.name);
  return [
    ...(isWanted && !isThere
      ? [step(events, 'create the log of changes', { sql: [LOG[engine].join(';\n')] })]
      : []),
    ...steps,
    ...triggerSteps(
      engine,
      tables.filter((each) => !isRebuilt(each)),
    ),
  ];
}

/**
 * The steps that make the triggers of tables those that record their changes. They replace all triggers of a
 * table in one transaction, so that no change is missed.
 */
function triggerSteps(engine: Engine, tables: readonly TableDiff<Table>[]): readonly Step[] {
  return tables.flatMap(({ table, current }): readonly Step[] => {
    const wanted = triggersOf(engine, table);
    const found = current?.triggers ?? [];
    const isSame = found.length === wanted.size && found.every((name) => wanted.has(name));
    if (isSame) return [];
    const what =
      wanted.size === 0 ? 'stop recording changes' : `record changes${found.length > 0 ? ' anew' : ''}`;
    const sql = [
      ...found.flatMap((name) => dropTrigger(engine, table.name, name)),
      ...createTriggers(engine, table),
    ];
    return [step(table.name, what, { sql: [sql.join(';\n')] })];
  });
}

/** The statements that create the triggers of a table; none if its changes are not recorded. */
export function createTriggers(engine: Engine, table: DeclaredTable): readonly string[] {
  const { recorded } = table;
  const triggers = triggersOf(engine, table);
  if (engine === 'sqlite' || recorded === undefined) return [...triggers.values()];
  const [[name = ''] = []] = triggers;
  return [createFunction(functionOf(name), recorded), ...triggers.values()];
}

/**
 * Statements after which the triggers of a table of PostgreSQL record its changes while it or its columns are
 * renamed: their functions would fail for a column that has another name. `nameOf` is the name that a column has then; undefined
 * if it does not exist yet.
 */
export function recordRenamed(
  { name: table, recorded }: DeclaredTable,
  { triggers }: Pick<Table, 'triggers'>,
  nameOf: (column: string) => string | undefined,
): readonly string[] {
  if (recorded === undefined) return triggers.flatMap((name) => dropTrigger('postgres', table, name));
  return [...new Set(triggers.map(functionOf))].map((name) => createFunction(name, recorded, nameOf));
}

const OWN_TRIGGER = /__(?:created|updated|deleted|truncated)(_[0-9a-f]{8})$/;

/** Whether a trigger has the name of one that records changes. */
export function isOwnTrigger(name: string): boolean {
  return OWN_TRIGGER.test(name);
}

/** The function of a trigger on PostgreSQL. */
function functionOf(trigger: string): string {
  return trigger.replace(OWN_TRIGGER, '__record$1');
}

function dropTrigger(engine: Engine, table: string, name: string): readonly string[] {
  if (engine === 'sqlite') return [`DROP TRIGGER ${identifier(name)}`];
  return [
    `DROP TRIGGER IF EXISTS ${identifier(name)} ON ${identifier(table)}`,
    // The last trigger takes the function with it.
    ...(name.includes('__updated_') ? [`DROP FUNCTION IF EXISTS ${identifier(functionOf(name))}()`] : []),
  ];
}

/** Longest part of a trigger's name that tells the table, in bytes. */
const LONGEST_TABLE = 38;

/**
 * The statements that create the triggers of a table, by name. The names end with a digest of what the
 * triggers do, so that the catalogue shows whether they are the wanted ones.
 */
function triggersOf(engine: Engine, { name: table, recorded }: DeclaredTable): ReadonlyMap<string, string> {
  if (recorded === undefined) return new Map();
  const write = engine === 'sqlite' ? sqliteTrigger : postgresTrigger;
  const tag = digest(
    `${table} ${engine === 'sqlite' ? sqliteTrigger('', 'updated', table, recorded) : createFunction('', recorded)}`,
  );
  const names = ['created', 'updated', 'deleted', ...(engine === 'postgres' ? ['truncated'] : [])] as const;
  return new Map(
    names.map((kind) => {
      const name = `${Buffer.from(table)
        .subarray(0, LONGEST_TABLE)
        .toString()
        .replace(/\ufffd$/, '')}__${kind}_${tag}`;
      return [name, write(name, kind as Kind, table, recorded)];
    }),
  );
}

type Kind = 'created' | 'updated' | 'deleted' | 'truncated';

const OPERATIONS = {
  created: 'INSERT',
  updated: 'UPDATE',
  deleted: 'DELETE',
  truncated: 'TRUNCATE',
} as const;

function sqliteTrigger(name: string, kind: Kind, table: string, recorded: Relation): string {
  const { name: relation, columns } = recorded;
  // As on PostgreSQL, the removal of a row comes before what it cascades to.
  const [when, current] = kind === 'deleted' ? ['BEFORE', 'OLD'] : ['AFTER', 'NEW'];
  const member = (row: string, { name: column, type }: Column) => {
    const value = `${row}.${identifier(column)}`;
    // Other programs have no function that writes base64.
    if (type.kind === 'bytes') return `iif(${value} IS NULL, NULL, hex(${value}))`;
    return codecOf(type).sqlite.json(value);
  };
  const object = (row: string) => {
    const members = columns.map((column) => `${textLiteral(column.name)}, ${member(row, column)}`);
    return `json_object(${members.join(', ')})`;
  };
  const bytes = columns.filter(({ type }) => type.kind === 'bytes').map((column) => column.name);
  const values = [
    textLiteral(relation),
    textLiteral(kind),
    NOW.sqlite,
    kind === 'updated' && keepsBefore(recorded)
      ? `json_array(${object('NEW')}, ${object('OLD')})`
      : object(current),
    bytes.length === 0 ? 'NULL' : textLiteral(JSON.stringify(bytes)),
  ];
  return `CREATE TRIGGER ${identifier(name)} ${when} ${OPERATIONS[kind]} ON ${identifier(table)} BEGIN
  INSERT INTO ${events} (relation, type, at, "row", bytes)
  VALUES (${values.join(', ')});
END`;
}

/** Whether updates record the row before, too: a rule says that its readers depend on the row. */
function keepsBefore({ rules }: Relation): boolean {
  return rules?.read.some((grant) => grant !== 'anyone' && 'where' in grant) === true;
}

/** The rows that a statement changed are those of its transition table, in the order of the changes. */
function postgresTrigger(name: string, kind: Kind, table: string, recorded: Relation): string {
  const rows = { created: 'NEW', updated: 'NEW', deleted: 'OLD', truncated: undefined }[kind];
  const former = kind === 'updated' && keepsBefore(recorded) ? 'OLD TABLE AS former ' : '';
  const changed = rows === undefined ? '' : `REFERENCING ${former}${rows} TABLE AS changed `;
  return `CREATE TRIGGER ${identifier(name)} AFTER ${OPERATIONS[kind]} ON ${identifier(table)} ${changed}FOR EACH STATEMENT EXECUTE FUNCTION ${identifier(functionOf(name))}()`;
}

/** After TRUNCATE, events start afresh, and readers find that their last event is gone. */
function createFunction(
  name: string,
  recorded: Relation,
  nameOf: (column: string) => string | undefined = (column) => column,
): string {
  const { name: relation, columns } = recorded;
  const object = (row: string, where = '') => {
    const members = columns.flatMap(({ name: column, type }) => {
      const stored = nameOf(column);
      if (stored === undefined) return [];
      return [`${codecOf(type).postgres.json(`${row}.${identifier(stored)}`)} AS ${identifier(column)}`];
    });
    return `(SELECT row_to_json(of) FROM (SELECT ${members.join(', ')}${where}) AS of)`;
  };
  const pairs = recorded.key.map((column) => {
    const stored = nameOf(column);
    return stored === undefined ? 'false' : `former.${identifier(stored)} = changed.${identifier(stored)}`;
  });
  const isThere = `former.${identifier(nameOf(recorded.key[0] ?? '') ?? '')} IS NOT NULL`;
  const updated = `  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO ${events} (relation, type, at, "row")
    SELECT ${textLiteral(relation)}, 'updated', moment, json_build_array(${object('changed')}, ${object('former', ` WHERE ${isThere}`)})::text
    FROM changed LEFT JOIN former ON ${pairs.join(' AND ')};
`;
  return `CREATE OR REPLACE FUNCTION ${identifier(name)}() RETURNS trigger LANGUAGE plpgsql AS $record$
DECLARE
  moment BIGINT := ${NOW.postgres};
BEGIN
  IF current_setting(${textLiteral(UNRECORDED)}, true) = 'on' THEN
    RETURN NULL;
  ELSIF TG_OP = 'TRUNCATE' THEN
    DELETE FROM ${events};
    INSERT INTO ${events} (relation, type, at, "row") VALUES ('', 'start', moment, '{}');
${keepsBefore(recorded) && !pairs.includes('false') ? updated : ''}  ELSE
    INSERT INTO ${events} (relation, type, at, "row")
    SELECT ${textLiteral(relation)}, CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'UPDATE' THEN 'updated' ELSE 'deleted' END,
      moment, ${object('changed')}::text
    FROM changed;
  END IF;
  RETURN NULL;
END $record$`;
}
