import {
  type Check,
  type Column,
  completed,
  type DeclaredCheck,
  type DeclaredColumn,
  type DeclaredTable,
  type ForeignKey,
  type Index,
  identifier,
  isOwnName,
  isWider,
  type Table,
  VERSION_COLUMN,
} from './tables.ts';

/** One difference between a table and its declaration. */
export type Change =
  | { readonly is: 'rename table'; readonly from: string }
  | { readonly is: 'rename column'; readonly from: string; readonly to: string }
  | { readonly is: 'rename constraint' | 'rename index'; readonly from: string; readonly to: string }
  | { readonly is: 'add column' | 'set default' | 'require' | 'number'; readonly column: DeclaredColumn }
  | { readonly is: 'retype'; readonly from: Column; readonly column: DeclaredColumn }
  /** A computed column goes before what it reads changes, and comes after that. */
  | { readonly is: 'drop computed'; readonly column: Column }
  | { readonly is: 'add computed'; readonly column: DeclaredColumn }
  /** A computed column keeps its values, and is written from now on. */
  | { readonly is: 'keep computed'; readonly column: DeclaredColumn }
  | { readonly is: 'relax'; readonly column: Column }
  | { readonly is: 'replace key'; readonly from: string | undefined }
  | { readonly is: 'drop check'; readonly check: Check }
  | { readonly is: 'widen check' | 'narrow check'; readonly from: Check; readonly check: DeclaredCheck }
  | { readonly is: 'grow'; readonly from: Column; readonly column: DeclaredColumn }
  | { readonly is: 'add check'; readonly check: DeclaredCheck }
  /** An index that is dropped late serves until those that replace it are there. */
  | { readonly is: 'drop index' | 'drop index late' | 'add index'; readonly index: Index }
  | { readonly is: 'drop reference' | 'add reference'; readonly foreignKey: ForeignKey };

/** A declared table, with its changes in an order in which they can be made. */
export interface TableDiff<T extends Table> {
  readonly table: DeclaredTable;
  /** The table of the catalogue after its renames; undefined if it has to be created. */
  readonly current: T | undefined;
  readonly changes: readonly Change[];
  /** Why the changes cannot be made; undefined if they can. */
  readonly obstacle: string | undefined;
}

export interface Diff<T extends Table> {
  readonly tables: readonly TableDiff<T>[];
  /** Columns and tables of relations that no longer are declared: `books.subtitle`, `loans`. */
  readonly undeclared: readonly string[];
}

/** The differences between declared tables and those of a catalogue. */
export function diffTables<T extends Table>(
  given: readonly DeclaredTable[],
  catalogue: readonly T[],
): Diff<T> {
  const currentOf = (table: DeclaredTable) => catalogue.find(({ name }) => name === table.name);
  const declared = given
    // Before its own migrations a database has none of the tables that are partial.
    .filter((table) => !table.isPartial || currentOf(table) !== undefined)
    .map((table) => completed(table, currentOf(table)));
  const renames = renamesOf(declared, catalogue);
  const after = renames.size === 0 ? catalogue : catalogue.map((table) => withRenames(table, renames));
  const renamed = new Map(after.map((table) => [table.name, table]));
  const retyped = new Set(
    declared.flatMap(({ name, columns }) =>
      columns.flatMap((column) => {
        const current = renamed.get(name)?.columns.find((each) => each.name === column.name);
        return current !== undefined && isRetyped(current, column) ? [`${name}.${column.name}`] : [];
      }),
    ),
  );
  const rekeyed = declared.filter(({ name, key }) => !isSame(key, renamed.get(name)?.key ?? key));
  const broken = new Set([...retyped, ...rekeyed.map(({ name }) => name)]);
  const names = new Set(declared.map(({ name }) => name));
  return {
    tables: declared.map((table): TableDiff<T> => {
      const current = renamed.get(table.name);
      if (current === undefined) return { table, current, changes: [], obstacle: undefined };
      const { from, columns } = renames.get(table.name) ?? { from: table.name, columns: new Map() };
      const isKeyChanged =
        rekeyed.includes(table) || current.key.some((column) => retyped.has(`${table.name}.${column}`));
      const referring = isKeyChanged
        ? after.find(
            (other) => !names.has(other.name) && other.foreignKeys.some((key) => key.table === table.name),
          )
        : undefined;
      return {
        table,
        current,
        obstacle:
          referring !== undefined
            ? `${referring.name}, which is not declared, refers to its key`
            : computedOverValues(table, current),
        changes: [
          ...(from === table.name ? [] : [{ is: 'rename table', from } as const]),
          ...[...columns].map(([to, from]) => ({ is: 'rename column', from, to }) as const),
          ...changesOf(table, current, from, broken),
        ],
      };
    }),
    undeclared: [...renamed.values()].flatMap((table) =>
      names.has(table.name) ? undeclaredColumns(table, declared) : isRelation(table) ? [table.name] : [],
    ),
  };
}

function isRelation({ columns }: Table): boolean {
  return columns.some(({ name }) => name === VERSION_COLUMN);
}

function undeclaredColumns(table: Table, declared: readonly DeclaredTable[]): readonly string[] {
  const known = declared.find(({ name }) => name === table.name)?.columns.map(({ name }) => name);
  return table.columns
    .filter(({ name }) => known?.includes(name) === false)
    .map(({ name }) => `${table.name}.${name}`);
}

/** The former names of a table and of its columns, by their names. */
interface Renames {
  readonly from: string;
  readonly columns: ReadonlyMap<string, string>;
}

/** The renames that the catalogue lacks, by the declared name of their table. */
function renamesOf(
  declared: readonly DeclaredTable[],
  catalogue: readonly Table[],
): ReadonlyMap<string, Renames> {
  const existing = new Map(catalogue.map((table) => [table.name, table]));
  const names = new Set(declared.map(({ name }) => name));
  return new Map(
    declared.flatMap(({ name, was, columns }) => {
      const isRenamed = was !== undefined && !existing.has(name) && existing.has(was) && !names.has(was);
      const from = isRenamed ? was : name;
      const old = new Set(existing.get(from)?.columns.map((column) => column.name));
      const found = columns.filter((column) => {
        const isFree = !columns.some((other) => other.name === column.was);
        return column.was !== undefined && isFree && !old.has(column.name) && old.has(column.was);
      });
      if (!isRenamed && found.length === 0) return [];
      return [[name, { from, columns: new Map(found.map((column) => [column.name, column.was ?? ''])) }]];
    }),
  );
}

/** A table as it will be after all renames. */
function withRenames<T extends Table>(table: T, renames: ReadonlyMap<string, Renames>): T {
  const nameOf = (from: string) => [...renames].find(([, each]) => each.from === from)?.[0] ?? from;
  const columnOf = (owner: string, name: string) => {
    const columns = renames.get(nameOf(owner))?.columns ?? new Map<string, string>();
    return [...columns].find(([, from]) => from === name)?.[0] ?? name;
  };
  const own = (name: string) => columnOf(table.name, name);
  return {
    ...table,
    name: nameOf(table.name),
    columns: table.columns.map((column) => ({
      ...column,
      name: own(column.name),
      ...(column.computed !== undefined && { computed: renamedIn(column.computed, own) }),
    })),
    key: table.key.map(own),
    checks: table.checks.map((check) => ({ ...check, column: own(check.column) })),
    indexes: table.indexes.map((index) => ({
      ...index,
      columns: index.columns.map((column) => ({ ...column, name: own(column.name) })),
    })),
    foreignKeys: table.foreignKeys.map((key) => ({
      ...key,
      columns: key.columns.map(own),
      table: nameOf(key.table),
      targetColumns: key.targetColumns.map((name) => columnOf(key.table, name)),
    })),
  };
}

/** An expression after its columns were renamed. */
function renamedIn(expression: string, nameOf: (name: string) => string): string {
  return expression.replace(/'(?:[^']|'')*'|"((?:[^"]|"")+)"/g, (text, name: string | undefined) =>
    name === undefined ? text : identifier(nameOf(name.replaceAll('""', '"'))),
  );
}

/** Kinds whose values an engine stores alike. */
const FAMILIES: Readonly<Record<string, string>> = { integer: 'bigint', serial: 'bigint', enum: 'text' };
const familyOf = (kind: string) => FAMILIES[kind] ?? kind;

function isRetyped(from: Column, to: Column): boolean {
  return (from.type !== to.type && !isGrown(from, to)) || familyOf(from.kind) !== familyOf(to.kind);
}

/** Whether a column only gets more digits, which changes no row. */
function isGrown(from: Column, to: Column): boolean {
  const [before, after] = [from, to].map(({ type }) => /^numeric\((\d+), (\d+)\)$/.exec(type));
  return before?.[2] !== undefined && before[2] === after?.[2] && Number(before[1]) < Number(after[1]);
}

function changesOf(
  table: DeclaredTable,
  current: Table,
  formerName: string,
  broken: ReadonlySet<string>,
): readonly Change[] {
  const isOwn = (name: string) => isOwnName(table.name, name) || isOwnName(formerName, name);
  const computed = computedChanges(table, current);
  const columnsOf = (is: Change['is']) =>
    new Set(
      computed.flatMap((change) => (change.is === is && 'column' in change ? [change.column.name] : [])),
    );
  const [added, dropped] = [columnsOf('add computed'), columnsOf('drop computed')];
  // Checks and indexes go with their column.
  const kept = {
    ...current,
    checks: current.checks.filter(({ column }) => !dropped.has(column)),
    indexes: current.indexes.filter(({ columns }) => !columns.some(({ name }) => dropped.has(name))),
  };
  return [
    ...foreignKeyChanges(table, current, isOwn, broken),
    ...indexChanges(table, kept, isOwn, formerName),
    ...checkChanges(table, kept).filter((change) => !('check' in change && added.has(change.check.column))),
    ...columnChanges(table, current),
    ...computed,
    ...keyChanges(table, current, isOwn),
  ].toSorted((a, b) => ORDER.indexOf(a.is) - ORDER.indexOf(b.is));
}

const ORDER: readonly Change['is'][] = [
  'drop reference',
  'drop index',
  'drop computed',
  'keep computed',
  'drop check',
  'rename constraint',
  'rename index',
  'retype',
  'grow',
  'add column',
  'add computed',
  'number',
  'set default',
  'require',
  'replace key',
  'relax',
  'widen check',
  'narrow check',
  'add check',
  'add index',
  'drop index late',
  'add reference',
];

function columnChanges({ columns }: DeclaredTable, current: Table): readonly Change[] {
  const declared = new Set(columns.map(({ name }) => name));
  const undeclared = current.columns.filter(({ name }) => !declared.has(name));
  return [
    // Rows that Portico adds have no value for it.
    ...undeclared.filter(isMandatory).map((column) => ({ is: 'relax', column }) as const),
    ...columns.flatMap((column): readonly Change[] => {
      if (column.computed !== undefined) return [];
      const found = current.columns.find(({ name }) => name === column.name);
      if (found === undefined) return [{ is: 'add column', column }];
      const changes: Change[] = [];
      if (isRetyped(found, column)) changes.push({ is: 'retype', from: found, column });
      else if (found.type !== column.type) changes.push({ is: 'grow', from: found, column });
      if (found.default !== column.default && column.identity === undefined && !isRetyped(found, column))
        changes.push({ is: 'set default', column });
      if (found.identity !== column.identity) changes.push({ is: 'number', column });
      if (found.nullable && !column.nullable) changes.push({ is: 'require', column });
      if (!found.nullable && column.nullable) changes.push({ is: 'relax', column });
      return changes;
    }),
  ];
}

function isMandatory({ nullable, default: constant, identity, computed }: Column): boolean {
  return !nullable && constant === undefined && identity === undefined && computed === undefined;
}

/** The computed columns that are new, or whose expression or what it reads changes, and those that are none any more. */
function computedChanges({ columns }: DeclaredTable, current: Table): readonly Change[] {
  const nowOf = (name: string) => current.columns.find((column) => column.name === name);
  const retyped = columns.filter((column) => {
    const from = nowOf(column.name);
    return from !== undefined && column.computed === undefined && from.type !== column.type;
  });
  return columns.flatMap((column): readonly Change[] => {
    const found = nowOf(column.name);
    if (column.computed === undefined)
      return found?.computed === undefined ? [] : [{ is: 'keep computed', column }];
    if (found === undefined) return [{ is: 'add computed', column }];
    const reads = retyped.some(({ name }) => column.computed?.includes(identifier(name)));
    if (found.computed === column.computed && found.type === column.type && !reads) return [];
    return [
      { is: 'drop computed', column: found },
      { is: 'add computed', column },
    ];
  });
}

/** Why stored values would be lost; undefined if none would. */
function computedOverValues({ columns }: DeclaredTable, current: Table): string | undefined {
  const lost = columns.find(
    ({ name, computed }) =>
      computed !== undefined &&
      current.columns.some((column) => column.name === name && column.computed === undefined),
  );
  return (
    lost && `${lost.name} has stored values; leave it out of the declaration, drop it, and declare it then`
  );
}

function keyChanges(
  { key, keyName }: DeclaredTable,
  current: Table,
  isOwn: (name: string) => boolean,
): readonly Change[] {
  if (!isSame(key, current.key)) return [{ is: 'replace key', from: current.keyName }];
  const from = current.keyName;
  if (from === undefined || keyName === undefined || from === keyName || !isOwn(from)) return [];
  return [{ is: 'rename constraint', from, to: keyName }];
}

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** Whether a column stays as it is, but for its bounds. */
function keepsType(name: string, current: Table, { columns }: DeclaredTable): boolean {
  const from = current.columns.find((each) => each.name === name);
  const to = columns.find((each) => each.name === name);
  return from !== undefined && to !== undefined && !isRetyped(from, to);
}

function checkChanges(table: DeclaredTable, current: Table): readonly Change[] {
  const { checks, columns } = table;
  const matches = (a: Check, b: Check) => a.column === b.column && a.tag === b.tag;
  const added = checks.filter((check) => !current.checks.some((each) => matches(each, check)));
  const isDeclared = (name: string) => columns.some((column) => column.name === name);
  const dropped = current.checks.filter(
    (check) => isDeclared(check.column) && !checks.some((each) => matches(each, check)),
  );
  const renamed = checks.flatMap((check) => {
    const found = current.checks.find((each) => matches(each, check));
    return found === undefined || found.name === check.name ? [] : [{ from: found.name, to: check.name }];
  });
  const widened = new Map(
    checks.flatMap((check) => {
      const from = dropped.find((each) => isWider(check, each));
      return from === undefined ? [] : [[check, from] as const];
    }),
  );
  // The old check stays until all rows meet the new one, unless it is in the way of another type.
  const narrowed = new Map(
    added.flatMap((check) => {
      const from = dropped.find(
        (each) => each.column === check.column && keepsType(check.column, current, table),
      );
      return from === undefined || widened.has(check) ? [] : [[check, from] as const];
    }),
  );
  const replaced = new Set([...widened.values(), ...narrowed.values()]);
  return [
    ...dropped.filter((check) => !replaced.has(check)).map((check) => ({ is: 'drop check', check }) as const),
    ...[...widened].map(([check, from]) => ({ is: 'widen check', from, check }) as const),
    // SQLite cannot rename a check, and nothing needs the name there.
    ...(current.keyName === undefined ? [] : renamed).map(
      (names) => ({ is: 'rename constraint', ...names }) as const,
    ),
    ...[...narrowed].map(([check, from]) => ({ is: 'narrow check', from, check }) as const),
    ...added
      .filter((check) => !widened.has(check) && !narrowed.has(check))
      .map((check) => ({ is: 'add check', check }) as const),
  ];
}

function indexChanges(
  table: DeclaredTable,
  current: Table,
  isOwn: (name: string) => boolean,
  formerName: string,
): readonly Change[] {
  const content = ({ isUnique, columns }: Index) => JSON.stringify([isUnique, columns]);
  const named = (name: string) => current.indexes.find((each) => each.name === name);
  const missing = table.indexes.filter((index) => {
    const found = named(index.name);
    return found === undefined || content(found) !== content(index);
  });
  const kept = table.indexes.filter((index) => !missing.includes(index)).map(({ name }) => name);
  const stale = current.indexes.filter(({ name }) => isOwn(name) && !kept.includes(name));
  const changes: Change[] = [];
  for (const index of missing) {
    const at = stale.findIndex((each) => content(each) === content(index));
    const [former] = at < 0 || named(index.name) !== undefined ? [] : stale.splice(at, 1);
    changes.push(
      former === undefined
        ? { is: 'add index', index }
        : { is: 'rename index', from: former.name, to: index.name },
    );
  }
  // Another index, or a new table, may need the name; PostgreSQL refuses types without a collation in an index with one.
  const isInTheWay = ({ name, columns }: Index) =>
    formerName !== table.name ||
    table.indexes.some((index) => index.name === name) ||
    columns.some((column) => column.fold && !keepsType(column.name, current, table));
  return [
    ...stale.map((index) => ({ is: isInTheWay(index) ? 'drop index' : 'drop index late', index }) as const),
    ...changes,
  ];
}

function foreignKeyChanges(
  table: DeclaredTable,
  current: Table,
  isOwn: (name: string) => boolean,
  broken: ReadonlySet<string>,
): readonly Change[] {
  const isDeclared = (name: string) => table.columns.some((column) => column.name === name);
  const content = ({ columns, table, targetColumns, onDelete }: ForeignKey) =>
    JSON.stringify([columns, table, targetColumns, onDelete]);
  /** A reference is made anew if its columns change their type, or its target another key. */
  const isBroken = (key: ForeignKey) =>
    broken.has(key.table) ||
    key.columns.some((column) => broken.has(`${table.name}.${column}`)) ||
    key.targetColumns.some((column) => broken.has(`${key.table}.${column}`));
  /** Columns that are no longer declared keep their references, unless another one has the name now. */
  const isStale = (key: ForeignKey) =>
    isBroken(key) ||
    (isOwn(key.name) &&
      !isKnown(key, table.foreignKeys) &&
      (key.columns.every(isDeclared) || table.foreignKeys.some(({ name }) => name === key.name)));
  const isKnown = (key: ForeignKey, others: readonly ForeignKey[]) =>
    !isBroken(key) && others.some((each) => content(each) === content(key));
  const renamed = current.foreignKeys.flatMap((key) => {
    const declared = isKnown(key, table.foreignKeys)
      ? table.foreignKeys.find((each) => content(each) === content(key))
      : undefined;
    const isOther = declared !== undefined && current.keyName !== undefined && declared.name !== key.name;
    return isOther ? [{ is: 'rename constraint', from: key.name, to: declared.name } as const] : [];
  });
  return [
    ...current.foreignKeys
      .filter(isStale)
      .map((foreignKey) => ({ is: 'drop reference', foreignKey }) as const),
    ...renamed,
    ...table.foreignKeys
      .filter((key) => !isKnown(key, current.foreignKeys))
      .map((foreignKey) => ({ is: 'add reference', foreignKey }) as const),
  ];
}
