import { createTriggers } from '../changes/change-triggers.ts';
import {
  checkClause,
  columnDefinition,
  createIndex,
  createTable,
  identifiers,
  referencesClause,
} from './ddl.ts';
import type { Change, Diff, TableDiff } from './diff.ts';
import type { SqliteTable } from './sqlite-catalogue.ts';
import {
  checkViolation,
  conversion,
  emptyViolation,
  missingViolation,
  noConversion,
  PER_ROW,
  referenceViolation,
  type Step,
  step,
  uniqueViolation,
  type Violation,
} from './steps.ts';
import {
  type Column,
  completed,
  type DeclaredTable,
  type ForeignKey,
  identifier,
  isOwnName,
  textLiteral,
} from './tables.ts';

/** The steps that make the tables of a file those of the declaration. */
export function planSqlite({ tables }: Diff<SqliteTable>): readonly Step[] {
  return [
    ...tables.flatMap(renameSteps),
    ...tables.flatMap(({ table, current }) => (current === undefined ? createSteps(table) : [])),
    ...tables.flatMap((each) =>
      each.current === undefined ? [] : changeSteps({ ...each, current: each.current }, tables),
    ),
  ];
}

/** SQLite also renames what refers to a table or a column. */
function renameSteps({ table: { name, was }, changes }: TableDiff<SqliteTable>): readonly Step[] {
  return changes.flatMap((change): readonly Step[] => {
    const rename = { class: 'checked', breaksOthers: true } as const;
    if (change.is === 'rename table') {
      const sql = [`ALTER TABLE ${identifier(was ?? '')} RENAME TO ${identifier(name)}`];
      return [step(name, `rename table ${was} to ${name}`, { ...rename, sql })];
    }
    if (change.is !== 'rename column') return [];
    const { from, to } = change;
    const sql = [`ALTER TABLE ${identifier(name)} RENAME COLUMN ${identifier(from)} TO ${identifier(to)}`];
    return [step(name, `rename column ${from} to ${to}`, { ...rename, sql })];
  });
}

function createSteps(table: DeclaredTable): readonly Step[] {
  const indexes = table.indexes.map((index) => createIndex('sqlite', table.name, index));
  return [
    step(table.name, 'create table', { sql: [[createTable('sqlite', table), ...indexes].join(';\n')] }),
  ];
}

interface ExistingDiff extends TableDiff<SqliteTable> {
  readonly current: SqliteTable;
}

function changeSteps(diff: ExistingDiff, all: Diff<SqliteTable>['tables']): readonly Step[] {
  const { table, changes } = diff;
  const rest = changes.filter(isMade);
  if (rest.length === 0) return [];
  const added = rest.flatMap((change) => (change.is === 'add column' ? [change.column] : []));
  const simple = rest.map((change) => simpleSteps(table, change, changes));
  if (added.every(isAddable) && simple.every((steps) => steps !== undefined)) return simple.flat();
  return rebuildSteps(diff, all);
}

/** Whether ADD COLUMN can add a column: existing rows get its constant default, or null. */
function isAddable({ nullable, default: constant, identity }: Column): boolean {
  return identity === undefined && (nullable || constant !== undefined);
}

/** The steps for a change that needs no rebuild; undefined if it needs one. */
function simpleSteps(
  table: DeclaredTable,
  change: Change,
  all: readonly Change[],
): readonly Step[] | undefined {
  const added = all.flatMap((each) => (each.is === 'add column' ? [each.column] : []));
  switch (change.is) {
    case 'add column': {
      const { column } = change;
      const checks = table.checks.filter((check) => check.column === column.name).map(checkClause);
      const references = table.foreignKeys
        .filter(({ columns }) => columns[0] === column.name)
        .map((key) => `CONSTRAINT ${identifier(key.name)} ${referencesClause(key)}`);
      const parts = [columnDefinition('sqlite', column), ...checks, ...references];
      const sql = [`ALTER TABLE ${identifier(table.name)} ADD COLUMN ${parts.join(' ')}`];
      return [
        step(table.name, `add column ${column.name}`, { sql, perRow: checks.length > 0 ? PER_ROW.index : 0 }),
      ];
    }
    case 'add check':
      // It is a part of its new column.
      return added.some(({ name }) => name === change.check.column) ? [] : undefined;
    case 'add reference': {
      const { columns } = change.foreignKey;
      const column = added.find(({ name }) => name === columns[0]);
      // SQLite adds a column with a reference only if existing rows get null.
      return columns.length === 1 && column?.nullable === true && column.default === undefined
        ? []
        : undefined;
    }
    case 'widen check':
    case 'drop check': {
      // SQLite would rename the column in the text.
      if (all.some(({ is }) => is === 'rename column')) return undefined;
      const isDrop = change.is === 'drop check';
      const { name, condition } = isDrop ? change.check : change.from;
      const from = `CONSTRAINT ${identifier(name)} CHECK (${condition})`;
      return [
        step(table.name, `${isDrop ? 'drop' : 'widen'} the check of ${change.check.column}`, {
          sql: [
            isDrop ? editTable(table.name, from) : editTable(table.name, from, checkClause(change.check)),
          ],
          isEdit: true,
        }),
      ];
    }
    case 'drop index':
    case 'drop index late':
      return [
        step(table.name, `drop index ${change.index.name}`, {
          sql: [`DROP INDEX ${identifier(change.index.name)}`],
        }),
      ];
    case 'rename index': {
      const index = table.indexes.find(({ name }) => name === change.to);
      if (index === undefined) return [];
      const sql = [`DROP INDEX ${identifier(change.from)};\n${createIndex('sqlite', table.name, index)}`];
      return [
        step(table.name, `rename index ${change.from} to ${change.to}`, {
          sql,
          perRow: PER_ROW.index,
          lock: 'writes',
        }),
      ];
    }
    case 'add index': {
      const { index } = change;
      return [
        step(table.name, `create index ${index.name}`, {
          class: index.isUnique ? 'checked' : 'additive',
          sql: [createIndex('sqlite', table.name, index)],
          lock: 'writes',
          perRow: PER_ROW.index,
          violations: index.isUnique ? [uniqueViolation(table, index, 'sqlite')] : [],
        }),
      ];
    }
    default:
      return undefined;
  }
}

/**
 * Replaces a constraint in the text of a table, or removes it: sqlite.org/lang_altertable.html describes that for
 * changes which no row contradicts.
 */
function editTable(table: string, from: string, to?: string): string {
  const [text, name] = [textLiteral(from), textLiteral(table)];
  const edited =
    to === undefined
      ? [',\n  ', ', ', ' '].reduce(
          (sql, before) => `replace(${sql}, ${textLiteral(before + from)}, '')`,
          'sql',
        )
      : `replace(sql, ${text}, ${textLiteral(to)})`;
  return `UPDATE sqlite_schema SET sql = ${edited} WHERE type = 'table' AND name = ${name} AND instr(sql, ${text}) > 0`;
}

/** Creates the table anew, as SQLite can change little of a table: sqlite.org/lang_altertable.html#otheralter. */
function rebuildSteps(
  { table, current, changes, obstacle }: ExistingDiff,
  all: Diff<SqliteTable>['tables'],
): readonly Step[] {
  // Rows are named by the key that they have.
  const named = { ...table, key: current.key.length > 0 ? current.key : ['rowid'] };
  const problems: string[] = obstacle === undefined ? [] : [obstacle];
  const violations: Violation[] = [];
  const selected = new Map<string, string>();
  for (const column of table.columns) {
    if (column.computed !== undefined) continue;
    const from = current.columns.find(({ name }) => name === column.name);
    let expression = from === undefined ? (column.fill ?? 'NULL') : identifier(column.name);
    if (from !== undefined && changes.some((change) => change.is === 'retype' && change.column === column)) {
      const found = conversion('sqlite', from, column);
      if (found === undefined) problems.push(noConversion(from, column));
      expression = found?.expression ?? expression;
      if (found?.loses !== undefined)
        violations.push({
          ...missingViolation(named, column.name),
          problem: `whose ${column.name} would change as a ${column.kind}`,
          where: found.loses,
        });
    }
    const isRequired =
      !column.nullable && (from === undefined || from.nullable) && column.identity === undefined;
    if (isRequired && column.fill === undefined)
      violations.push(
        from === undefined ? emptyViolation(named, column.name) : missingViolation(named, column.name),
      );
    else if (isRequired && from !== undefined) expression = `coalesce(${expression}, ${column.fill})`;
    selected.set(column.name, expression);
  }
  for (const change of changes) {
    if (change.is === 'add check' || change.is === 'narrow check') {
      const expression = selected.get(change.check.column);
      violations.push(
        checkViolation(named, change.check, expression === undefined ? undefined : `(${expression})`),
      );
    }
    if (
      change.is === 'add index' &&
      change.index.isUnique &&
      isStored(
        current,
        change.index.columns.map(({ name }) => name),
      )
    )
      violations.push(uniqueViolation(named, change.index, 'sqlite'));
    // The check of a rebuild finds rows that refer to a column which a later step adds.
    if (
      change.is === 'add reference' &&
      isStored(current, change.foreignKey.columns) &&
      isTarget(change.foreignKey, all)
    )
      violations.push(referenceViolation(named, change.foreignKey));
  }
  if (current.obstacle !== undefined) problems.push(`the table has to be made anew, and ${current.obstacle}`);
  return [
    step(table.name, `make the table anew to ${described(changes)}`, {
      class: 'rewriting',
      isRebuild: true,
      breaksOthers: true,
      sql: [rebuildScript(table, { ...current, foreignKeys: keptReferences(current, changes) }, selected)],
      lock: 'writes',
      perRow: PER_ROW.rewrite + table.indexes.length * PER_ROW.index,
      violations,
      obstacle: problems.length > 0 ? problems.join('; ') : undefined,
    }),
  ];
}

function keptReferences({ foreignKeys }: SqliteTable, changes: readonly Change[]) {
  return foreignKeys.filter(
    (key) => !changes.some((change) => change.is === 'drop reference' && change.foreignKey === key),
  );
}

function isTarget({ table, targetColumns }: ForeignKey, all: Diff<SqliteTable>['tables']): boolean {
  const current = all.find((each) => each.table.name === table)?.current;
  return current === undefined || isStored(current, targetColumns);
}

function isStored(current: SqliteTable, columns: readonly string[]): boolean {
  return columns.every((name) => current.columns.some((column) => column.name === name));
}

/** The script of a rebuild, in one transaction without foreign keys and with `legacy_alter_table`. */
export function rebuildScript(
  declared: DeclaredTable,
  current: SqliteTable,
  selected: ReadonlyMap<string, string>,
  dropped?: string,
): string {
  const table = completed(declared, current);
  const kept = current.columns
    .filter(({ name }) => !table.columns.some((column) => column.name === name) && name !== dropped)
    .map((column) => ({
      ...column,
      nullable: true,
      identity: undefined,
      default: parenthesised(column.default),
    }));
  const isKept = (columns: readonly string[]) =>
    columns.every((name) => kept.some((column) => column.name === name));
  const isDeclared = (columns: readonly string[]) =>
    table.foreignKeys.some((key) => key.columns.join() === columns.join());
  const foreignKeys = current.foreignKeys.filter(
    ({ name, columns }) =>
      isKept(columns) ||
      (!isOwnName(table.name, name) && !isDeclared(columns) && !columns.includes(dropped ?? '')),
  );
  const name = `_new_${table.name}`;
  const columns = [...table.columns, ...kept]
    .filter(({ computed }) => computed === undefined)
    .map((column) => column.name);
  const expressions = columns.map((column) => selected.get(column) ?? identifier(column));
  const isNumbered = table.columns.some(({ identity }) => identity !== undefined);
  const others = current.others.filter((sql) => dropped === undefined || !sql.includes(dropped));
  return [
    `DROP TABLE IF EXISTS ${identifier(name)}`,
    createTable(
      'sqlite',
      { ...table, columns: [...table.columns, ...kept], foreignKeys: [...table.foreignKeys, ...foreignKeys] },
      name,
    ),
    `INSERT INTO ${identifier(name)} (${identifiers(columns)}) SELECT ${expressions.join(', ')} FROM ${identifier(table.name)}`,
    ...(isNumbered ? keepSequence(table.name, name) : []),
    `DROP TABLE ${identifier(table.name)}`,
    `ALTER TABLE ${identifier(name)} RENAME TO ${identifier(table.name)}`,
    ...table.indexes.map((index) => createIndex('sqlite', table.name, index)),
    ...others,
    ...(current.triggers.length > 0 ? createTriggers('sqlite', table) : []),
  ].join(';\n');
}

function parenthesised(constant: string | undefined): string | undefined {
  return constant === undefined ? undefined : `(${constant})`;
}

/** So that the numbers of deleted rows are not used again. */
function keepSequence(table: string, name: string): readonly string[] {
  return [
    `INSERT INTO sqlite_sequence (name, seq) SELECT ${textLiteral(name)}, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ${textLiteral(name)})`,
    `UPDATE sqlite_sequence SET seq = max(seq, coalesce((SELECT seq FROM sqlite_sequence WHERE name = ${textLiteral(table)}), 0)) WHERE name = ${textLiteral(name)}`,
  ];
}

/** Whether a rebuild makes the change; renames are steps of their own. */
function isMade({ is }: Change): boolean {
  return is !== 'rename table' && is !== 'rename column';
}

/** Describes the changes of a rebuild. The definition of a new column has its check and its reference. */
function described(changes: readonly Change[]): string {
  const added = changes.flatMap((change) => (change.is === 'add column' ? [change.column.name] : []));
  const isPart = (change: Change) =>
    (change.is === 'add check' && added.includes(change.check.column)) ||
    (change.is === 'add reference' && change.foreignKey.columns.every((name) => added.includes(name)));
  return changes
    .filter((change) => isMade(change) && !isPart(change))
    .map(describe)
    .join(', ');
}

/** Describes a change in a plan. */
function describe(change: Change): string {
  switch (change.is) {
    case 'rename table':
    case 'replace key':
      return change.is;
    case 'rename column':
    case 'rename constraint':
    case 'rename index':
      return `${change.is} ${change.from}`;
    case 'drop check':
    case 'widen check':
    case 'narrow check':
    case 'add check':
      return `${change.is.slice(0, -6)} the check of ${change.check.column}`;
    case 'drop index late':
      return `drop index ${change.index.name}`;
    case 'drop index':
    case 'add index':
      return `${change.is} ${change.index.name}`;
    case 'drop reference':
    case 'add reference':
      return `${change.is} ${change.foreignKey.columns.join(', ')}`;
    default:
      return `${change.is} ${change.column.name}`;
  }
}
