import type { Relation } from '../../relations/relation.ts';
import {
  type Column,
  type DeclaredCheck,
  declaredTables,
  defaultLiteral,
  type Engine,
  type ForeignKey,
  type Index,
  identifier,
  objectName,
  type Table,
  textLiteral,
} from './tables.ts';

/**
 * The statements that create the tables of relations in an empty database, in order. Run them in one
 * transaction.
 */
export function schemaStatements(engine: Engine, relations: readonly Relation[]): readonly string[] {
  const tables = declaredTables(engine, relations).filter(({ isPartial }) => !isPartial);
  return [
    ...tables.map((table) => createTable(engine, table)),
    ...tables.flatMap((table) => noteComputed(engine, table)),
    ...tables.flatMap((table) => table.indexes.map((index) => createIndex(engine, table.name, index))),
    ...tables.flatMap((table) => foreignKeysOf(engine, table)),
  ];
}

/** Tables refer to each other in any order, so PostgreSQL adds references after all tables exist. */
function foreignKeysOf(
  engine: Engine,
  { name, foreignKeys }: Pick<Table, 'name' | 'foreignKeys'>,
): readonly string[] {
  return engine === 'sqlite' ? [] : foreignKeys.map((key) => addConstraint(name, foreignKeyClause(key)));
}

/** The parts of a table that a statement creates. */
export interface TableParts extends Omit<Table, 'checks' | 'indexes' | 'triggers'> {
  readonly checks: readonly DeclaredCheck[];
}

/** Creates a table, on SQLite with its references; another name serves a rebuild. */
export function createTable(engine: Engine, table: TableParts, name: string = table.name): string {
  const { columns, key, checks, foreignKeys } = table;
  const isNumbered = engine === 'sqlite' && columns.some(({ identity }) => identity !== undefined);
  const parts = [
    ...columns.map((column) => columnDefinition(engine, column)),
    ...(isNumbered
      ? []
      : [`CONSTRAINT ${identifier(objectName(table.name, 'key', []))} PRIMARY KEY (${identifiers(key)})`]),
    ...checks.map(checkClause),
    ...(engine === 'sqlite' ? foreignKeys.map(foreignKeyClause) : []),
  ];
  return `CREATE TABLE ${identifier(name)} (\n  ${parts.join(',\n  ')}\n)${engine === 'sqlite' ? ' STRICT' : ''}`;
}

/** A column as CREATE TABLE and ADD COLUMN define it. */
export function columnDefinition(engine: Engine, column: Column): string {
  const { name, type, nullable, identity } = column;
  if (identity !== undefined)
    return engine === 'sqlite'
      ? `${identifier(name)} INTEGER PRIMARY KEY AUTOINCREMENT`
      : `${identifier(name)} ${type} GENERATED ${identity.toUpperCase()} AS IDENTITY`;
  const collation = engine === 'postgres' && type === 'text' ? ' COLLATE "C"' : '';
  if (column.computed !== undefined)
    return `${identifier(name)} ${type}${collation} GENERATED ALWAYS AS (${column.computed}) STORED`;
  return `${identifier(name)} ${type}${collation}${defaultClause(engine, column)}${nullable ? '' : ' NOT NULL'}`;
}

/**
 * Notes the expressions of computed columns where the plan of a schema finds them. PostgreSQL rewrites an expression, so
 * that its own text cannot be compared; SQLite keeps it.
 */
export function noteComputed(
  engine: Engine,
  { name, columns }: Pick<Table, 'name' | 'columns'>,
): readonly string[] {
  if (engine === 'sqlite') return [];
  return columns.flatMap(({ name: column, computed }) =>
    computed === undefined
      ? []
      : [
          `COMMENT ON COLUMN ${identifier(name)}.${identifier(column)} IS ${textLiteral(COMPUTED + computed)}`,
        ],
  );
}

/** How the note of a computed column begins. */
export const COMPUTED = 'computed: ';

export function defaultClause(engine: Engine, { type, default: constant }: Column): string {
  return constant === undefined ? '' : ` DEFAULT ${defaultLiteral(engine, type, constant)}`;
}

export function checkClause({ name, column, on }: DeclaredCheck): string {
  return `CONSTRAINT ${identifier(name)} CHECK (${on(identifier(column))})`;
}

const ON_DELETE = { restrict: '', cascade: ' ON DELETE CASCADE', null: ' ON DELETE SET NULL' } as const;

/** `restrict` means NO ACTION, which looks at the end of a statement: it may delete rows that refer to each other. */
export function foreignKeyClause(key: ForeignKey): string {
  const { name, columns } = key;
  return `CONSTRAINT ${identifier(name)} FOREIGN KEY (${identifiers(columns)}) ${referencesClause(key)}`;
}

export function referencesClause({ table, targetColumns, onDelete }: ForeignKey): string {
  return `REFERENCES ${identifier(table)} (${identifiers(targetColumns)})${ON_DELETE[onDelete]}`;
}

export function addConstraint(table: string, clause: string): string {
  return `ALTER TABLE ${identifier(table)} ADD ${clause}`;
}

export function createIndex(
  engine: Engine,
  table: string,
  { name, isUnique, columns }: Index,
  how: 'at once' | 'concurrently' = 'at once',
): string {
  const parts = columns.map((column) =>
    column.fold ? FOLDED[engine](column.name) : identifier(column.name),
  );
  const words = `CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX ${how === 'concurrently' ? 'CONCURRENTLY ' : ''}`;
  return `${words}${identifier(name)} ON ${identifier(table)} (${parts.join(', ')})`;
}

/** As the codec of such texts compares them. */
const FOLDED = {
  sqlite: (name: string) => `${identifier(name)} COLLATE NOCASE`,
  postgres: (name: string) => `lower(${identifier(name)} COLLATE "C")`,
} as const;

export function identifiers(names: readonly string[]): string {
  return names.map(identifier).join(', ');
}
