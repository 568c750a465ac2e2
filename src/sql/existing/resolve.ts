import { didYouMean } from '../../core/text.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import type { Engine } from '../schema/tables.ts';
import { columnData } from './declared-columns.ts';
import type { FoundColumn, FoundTable } from './found.ts';
import { isUnordered, storedAs } from './native-types.ts';

/**
 * Completes relations over existing tables with how these store their values and with the names of their constraints. Appends
 * a line to `problems` for each difference between the declaration and the catalogue, with what to change.
 */
export function resolveRelations(
  engine: Engine,
  relations: readonly Relation[],
  found: ReadonlyMap<string | undefined, readonly FoundTable[]>,
  problems: string[],
): readonly Relation[] {
  return relations.map((relation): Relation => {
    const { existing, name, table } = relation;
    if (existing === undefined) return relation;
    const tables = found.get(existing.schema) ?? [];
    const at = tables.find((each) => each.name === table);
    if (at !== undefined) return resolved(engine, relation, at, problems);
    const guess = didYouMean(
      table,
      tables.map((each) => each.name),
    );
    problems.push(
      `${name}: the database has no table ${table}; correct the name, or remove the relation${guess}`,
    );
    return relation;
  });
}

function resolved(engine: Engine, relation: Relation, table: FoundTable, problems: string[]): Relation {
  const { name, existing } = relation;
  const columns = relation.columns.map((column): Column => {
    const place = `${name}.${column.name}`;
    const found = table.columns.find((each) => each.name === column.name);
    if (found === undefined) {
      const guess = didYouMean(
        column.name,
        table.columns.map((each) => each.name),
      );
      problems.push(`${place}: the table has no such column; remove it${guess}`);
      return column;
    }
    const type = storedAs(engine, typed(found, column, table), column.type);
    if (type === undefined) problems.push(`${place}: ${otherType(engine, table, found)}`);
    if (!table.isView) problems.push(...differencesOf(column, found).map((each) => `${place}: ${each}`));
    return { ...column, type: type ?? column.type };
  });
  if (!table.isView) problems.push(...constraintsOf(relation, table).map((each) => `${name}: ${each}`));
  const unordered = new Set(columns.filter(({ type }) => isUnordered(type)).map((column) => column.name));
  return {
    ...relation,
    columns,
    indexes: relation.indexes.map((list) => orderedPart(list, unordered)).filter(({ length }) => length > 0),
    existing: {
      schema: existing?.schema,
      isView: table.isView,
      hasDigest: table.hasDigest,
      constraints: new Map([
        ...table.indexes.map(({ name, columns }) => [name, columns] as const),
        ...table.references.flatMap(({ name, columns }) =>
          name === undefined ? [] : [[name, columns] as const],
        ),
        ...table.checks.map(
          ({ name, expression, columns }) => [name ?? textOf(expression), columns] as const,
        ),
      ]),
    },
  };
}

/** Views of SQLite do not tell the types of expressions. */
function typed(found: FoundColumn, { type: { kind } }: Column, { isView }: FoundTable): FoundColumn {
  return found.type === '' && isView ? { ...found, type: VIEWED[kind] ?? kind } : found;
}

const VIEWED: Readonly<Partial<Record<Column['type']['kind'], string>>> = {
  serial: 'integer',
  bigint: 'integer',
  decimal: 'numeric',
  number: 'real',
  enum: 'text',
  timestamp: 'datetime',
  bytes: 'blob',
};

/** SQLite names a check without a name by its text, of which it takes the first part if that is a quoted name. */
function textOf(expression: string): string {
  return (
    /^"([^"]*)"|^`([^`]*)`|^\[([^\]]*)\]/
      .exec(expression)
      ?.slice(1)
      .find((each) => each !== undefined) ?? expression
  );
}

/** The first columns of an index that sort as the values do that clients see. */
function orderedPart(columns: readonly string[], unordered: ReadonlySet<string>): readonly string[] {
  const at = columns.findIndex((column) => unordered.has(column));
  return at === -1 ? columns : columns.slice(0, at);
}

function otherType(engine: Engine, table: FoundTable, found: FoundColumn): string {
  const wanted = columnData(engine, table, found, false);
  const shown = found.type === '' ? 'without a type' : found.type;
  if (wanted === undefined) return `is ${shown} in the database, which Portico does not serve; remove it`;
  const {
    nullable: _n,
    default: _d,
    generated: _g,
    ...type
  } = wanted as unknown as Readonly<Record<string, unknown>>;
  return `is ${shown} in the database; declare it as ${JSON.stringify(type)}`;
}

function differencesOf(column: Column, found: FoundColumn): readonly string[] {
  const differences: string[] = [];
  if (found.nullable && !column.nullable)
    differences.push('may be null in the database; declare it nullable');
  if (!found.nullable && column.nullable) differences.push('is NOT NULL in the database; remove nullable');
  if (found.isGenerated && !column.isGenerated)
    differences.push('is computed by the database; declare generated: "always"');
  if (!found.isGenerated && column.isGenerated)
    differences.push('is not computed by the database; remove generated');
  const isLeft = column.default?.kind === 'database';
  if (isLeft && found.default === undefined && found.numbered === undefined)
    differences.push('has no default in the database; remove generated');
  if (column.type.kind === 'serial' && found.numbered === undefined)
    differences.push('is not numbered by the database; declare it as {"type":"integer"}');
  return differences;
}

function constraintsOf({ key, unique, indexes, references }: Relation, table: FoundTable): readonly string[] {
  const differences: string[] = [];
  const uniques = table.indexes.filter(
    ({ isUnique, isPlain, folded }) => isUnique && isPlain && folded.length === 0,
  );
  const isUnique = (columns: readonly string[]) =>
    [table.key, ...uniques.map((index) => index.columns)].some(
      (each) => each.length === columns.length && each.every((column) => columns.includes(column)),
    );
  const list = (columns: readonly string[]) => `(${columns.join(', ')})`;
  if (!isUnique(key))
    differences.push(`its key is ${list(table.key)} in the database, not ${list(key)}; correct key`);
  for (const columns of unique) {
    if (!isUnique(columns))
      differences.push(`the database has no unique constraint ${list(columns)}; remove it, or create it`);
  }
  for (const columns of indexes) {
    const isThere = table.indexes.some(
      (index) => index.isPlain && columns.every((column, i) => index.columns[i] === column),
    );
    if (!isThere && !table.key.join().startsWith(columns.join()))
      differences.push(`the database has no index ${list(columns)}; remove it, or create it`);
  }
  for (const { name, columns, onDelete } of references) {
    const own = table.references.find((reference) => reference.columns.join() === columns.join());
    if (own !== undefined && own.onDelete !== onDelete)
      differences.push(`${name} is removed otherwise in the database; declare onDelete: "${own.onDelete}"`);
  }
  return differences;
}
