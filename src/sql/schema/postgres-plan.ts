import { recordRenamed } from '../changes/change-triggers.ts';
import {
  addConstraint,
  checkClause,
  columnDefinition,
  createIndex,
  createTable,
  defaultClause,
  foreignKeyClause,
  identifiers,
  noteComputed,
} from './ddl.ts';
import type { Change, Diff, TableDiff } from './diff.ts';
import type { PostgresTable } from './postgres-catalogue.ts';
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
  type DeclaredColumn,
  type DeclaredTable,
  identifier,
  isOwnName,
  objectName,
  REQUIRED_TAG,
  textLiteral,
} from './tables.ts';

/** Changes before new tables are created, which may take names that these free. */
const FIRST: readonly Change['is'][] = [
  'rename table',
  'rename column',
  'drop reference',
  'drop index',
  'drop check',
  'rename constraint',
  'rename index',
];

/** The steps that make the tables of a schema those of the declaration, each without a long lock. */
export function planPostgres({ tables }: Diff<PostgresTable>): readonly Step[] {
  const existing = tables.flatMap((each) =>
    each.current === undefined ? [] : [{ ...each, current: each.current }],
  );
  const created = tables.filter(({ current }) => current === undefined).map(({ table }) => table);
  const steps = (isMeant: (change: Change) => boolean) =>
    existing.flatMap(({ table, current, changes, obstacle }) =>
      changes
        .filter(isMeant)
        .flatMap((change) => changeSteps(table, current, change, changes))
        .map((each) => (each.class === 'rewriting' && obstacle !== undefined ? { ...each, obstacle } : each)),
    );
  return [
    ...existing.flatMap(({ table, current }) => unfinishedSteps(table, current)),
    ...steps(({ is }) => FIRST.includes(is)),
    ...created.map(createStep),
    ...steps(({ is }) => !FIRST.includes(is) && is !== 'add reference'),
    ...existing.flatMap(validateSteps),
    ...created.flatMap((table) =>
      table.foreignKeys.map((key) =>
        step(table.name, `add reference ${key.columns.join(', ')}`, {
          sql: [addConstraint(table.name, foreignKeyClause(key))],
        }),
      ),
    ),
    ...steps(({ is }) => is === 'add reference'),
  ];
}

function createStep(table: DeclaredTable): Step {
  const indexes = table.indexes.map((index) => createIndex('postgres', table.name, index));
  return step(table.name, 'create table', {
    sql: [[createTable('postgres', table), ...noteComputed('postgres', table), ...indexes].join(';\n')],
  });
}

/** Drops what an interrupted step left: an index that no statement uses, though every write maintains it. */
function unfinishedSteps({ name }: DeclaredTable, { invalidIndexes }: PostgresTable): readonly Step[] {
  return invalidIndexes
    .filter((index) => isOwnName(name, index))
    .map((index) =>
      step(name, `drop the unfinished index ${index}`, {
        sql: [`DROP INDEX CONCURRENTLY ${identifier(index)}`],
      }),
    );
}

/** Validates what an interrupted step added without looking at the rows. */
function validateSteps({ table, current, changes }: TableDiff<PostgresTable>): readonly Step[] {
  const dropped = changes.flatMap((change) => {
    if (change.is === 'drop check' || change.is === 'widen check' || change.is === 'narrow check')
      return [change.check.name];
    if (change.is === 'drop reference') return [change.foreignKey.name];
    return change.is === 'rename constraint' ? [change.from] : [];
  });
  const open = current?.notValid.filter((name) => !dropped.includes(name)) ?? [];
  return [
    ...table.checks
      .filter(({ name }) => open.includes(name))
      .map((check) => validateStep(table, check.name, checkViolation(table, check))),
    ...table.foreignKeys
      .filter(({ name }) => open.includes(name))
      .map((key) => validateStep(table, key.name, referenceViolation(table, key))),
  ];
}

function validateStep({ name }: DeclaredTable, constraint: string, violation: Violation): Step {
  return step(name, `validate ${constraint}`, {
    class: 'checked',
    sql: [validate(name, constraint)],
    lock: 'nothing',
    perRow: PER_ROW.check,
    violations: [violation],
  });
}

function validate(table: string, constraint: string): string {
  return `ALTER TABLE ${identifier(table)} VALIDATE CONSTRAINT ${identifier(constraint)}`;
}

/** Adds a constraint for new rows, and then looks at the existing ones without a lock. */
function constraintSql(table: string, name: string, clause: string): readonly string[] {
  return [`${addConstraint(table, clause)} NOT VALID`, validate(table, name)];
}

/** PostgreSQL also makes the indexes of a rewritten table anew. */
function rewriteOf({ indexes }: DeclaredTable): number {
  return PER_ROW.rewrite + (1 + indexes.length) * PER_ROW.index;
}

/** The steps that make a change, one of all `changes` of the table. */
function changeSteps(
  table: DeclaredTable,
  current: PostgresTable,
  change: Change,
  changes: readonly Change[],
): readonly Step[] {
  const { name } = table;
  // Rows are named by the key that they have.
  const named = { ...table, key: current.key.length > 0 ? current.key : ['ctid'] };
  const alter = `ALTER TABLE ${identifier(name)}`;
  switch (change.is) {
    case 'rename table':
    case 'rename column': {
      const [what, rename] =
        change.is === 'rename table'
          ? [
              `rename table ${change.from} to ${name}`,
              `ALTER TABLE ${identifier(change.from)} RENAME TO ${identifier(name)}`,
            ]
          : [
              `rename column ${change.from} to ${change.to}`,
              `${alter} RENAME COLUMN ${identifier(change.from)} TO ${identifier(change.to)}`,
            ];
      const reading = current.columns.filter(({ computed }) =>
        computed?.includes(identifier(change.is === 'rename column' ? change.to : '')),
      );
      const noted = noteComputed('postgres', { name, columns: reading });
      const recorded = recordRenamed(table, current, (column) => nameAfter(change, changes, current, column));
      return [
        step(name, what, {
          class: 'checked',
          breaksOthers: true,
          sql: [[rename, ...noted, ...recorded].join(';\n')],
        }),
      ];
    }
    case 'rename constraint':
    case 'rename index': {
      const renamed = `RENAME ${change.is === 'rename index' ? '' : `CONSTRAINT ${identifier(change.from)} `}TO ${identifier(change.to)}`;
      const owner = change.is === 'rename index' ? `ALTER INDEX ${identifier(change.from)}` : alter;
      return [step(name, `${change.is} ${change.from} to ${change.to}`, { sql: [`${owner} ${renamed}`] })];
    }
    case 'drop reference':
    case 'drop check': {
      const constraint = change.is === 'drop check' ? change.check.name : change.foreignKey.name;
      return [
        step(name, `drop constraint ${constraint}`, {
          sql: [`${alter} DROP CONSTRAINT ${identifier(constraint)}`],
        }),
      ];
    }
    case 'drop index':
    case 'drop index late':
      return [
        step(name, `drop index ${change.index.name}`, {
          sql: [`DROP INDEX CONCURRENTLY ${identifier(change.index.name)}`],
        }),
      ];
    case 'relax':
      return [
        step(name, `allow null in ${change.column.name}`, {
          sql: [`${alter} ALTER COLUMN ${identifier(change.column.name)} DROP NOT NULL`],
        }),
      ];
    case 'add column':
      return addColumnSteps(named, change.column);
    case 'drop computed':
      return [
        step(name, `drop the computed column ${change.column.name}`, {
          class: 'rewriting',
          breaksOthers: true,
          sql: [`${alter} DROP COLUMN ${identifier(change.column.name)}`],
        }),
      ];
    case 'add computed': {
      const { column } = change;
      const checks = table.checks.filter((check) => check.column === column.name).map(checkClause);
      const added = `${alter} ADD COLUMN ${[columnDefinition('postgres', column), ...checks].join(' ')}`;
      return [
        step(name, `add the computed column ${column.name}`, {
          class: 'rewriting',
          sql: [[added, ...noteComputed('postgres', { name, columns: [column] })].join(';\n')],
          lock: 'everything',
          perRow: rewriteOf(table),
        }),
      ];
    }
    case 'keep computed': {
      const of = identifier(change.column.name);
      return [
        step(name, `keep the values of ${change.column.name}, which is no longer computed`, {
          class: 'checked',
          breaksOthers: true,
          sql: [
            `${alter} ALTER COLUMN ${of} DROP EXPRESSION;\nCOMMENT ON COLUMN ${identifier(name)}.${of} IS NULL`,
          ],
        }),
      ];
    }
    case 'require':
      return [requireStep(named, change.column, 'stored')];
    case 'set default':
      return [
        step(name, `set the default of ${change.column.name}`, {
          sql: [`${alter} ALTER COLUMN ${identifier(change.column.name)} ${defaultAction(change.column)}`],
        }),
      ];
    case 'number':
      return [numberStep(table, current, change.column)];
    case 'retype':
      return [retypeStep(named, change.from, change.column)];
    case 'replace key': {
      const dropped = change.from === undefined ? '' : `DROP CONSTRAINT ${identifier(change.from)}, `;
      const added = `ADD CONSTRAINT ${identifier(objectName(name, 'key', []))} PRIMARY KEY (${identifiers(table.key)})`;
      const index = {
        name: '',
        isUnique: true,
        columns: table.key.map((each) => ({ name: each, fold: false })),
      };
      return [
        step(name, 'replace the primary key', {
          class: 'rewriting',
          breaksOthers: true,
          sql: [`${alter} ${dropped}${added}`],
          lock: 'everything',
          perRow: rewriteOf(table),
          violations: [
            ...table.key.map((column) => missingViolation(named, column)),
            uniqueViolation({ ...table, key: ['ctid'] }, index, 'postgres'),
          ],
        }),
      ];
    }
    case 'add check': {
      const { check } = change;
      return [
        step(name, `check ${check.column}`, {
          class: current.columns.some((column) => column.name === check.column) ? 'checked' : 'additive',
          sql: constraintSql(name, check.name, checkClause(check)),
          perRow: PER_ROW.check,
          violations: [checkViolation(named, check)],
        }),
      ];
    }
    case 'widen check':
    case 'narrow check': {
      const { check, from } = change;
      const isAdded = current.checks.some((each) => each.name === check.name);
      const sql = constraintSql(name, check.name, checkClause(check)).slice(isAdded ? 1 : 0);
      // The old check goes last, so that a step that is interrupted is known to be one of these.
      return [
        step(name, `${change.is.slice(0, -6)} the check of ${check.column}`, {
          class: change.is === 'widen check' ? 'additive' : 'checked',
          violations: change.is === 'widen check' ? [] : [checkViolation(named, check)],
          sql: [...sql, `${alter} DROP CONSTRAINT IF EXISTS ${identifier(from.name)}`],
          perRow: PER_ROW.check,
        }),
      ];
    }
    case 'grow': {
      // With a check the statement would read all rows.
      const checks = current.checks.filter((check) => check.column === change.column.name);
      const actions = [
        ...checks.map((check) => `DROP CONSTRAINT ${identifier(check.name)}`),
        `ALTER COLUMN ${identifier(change.column.name)} TYPE ${change.column.type}`,
      ];
      return [
        step(name, `let ${change.column.name} have more digits`, { sql: [`${alter} ${actions.join(', ')}`] }),
      ];
    }
    case 'add index': {
      const { index } = change;
      return [
        step(name, `create index ${index.name}`, {
          class: index.isUnique ? 'checked' : 'additive',
          sql: [createIndex('postgres', name, index, 'concurrently')],
          lock: 'nothing',
          perRow: PER_ROW.index,
          violations: index.isUnique ? [uniqueViolation(named, index, 'postgres')] : [],
        }),
      ];
    }
    case 'add reference': {
      const { foreignKey } = change;
      return [
        step(name, `add reference ${foreignKey.columns.join(', ')}`, {
          class: 'checked',
          sql: constraintSql(name, foreignKey.name, foreignKeyClause(foreignKey)),
          perRow: PER_ROW.refer,
          violations: [referenceViolation(named, foreignKey)],
        }),
      ];
    }
  }
}

/** The name that a declared column has right after a rename of its table or a column; undefined if it is new. */
function nameAfter(
  change: Change,
  changes: readonly Change[],
  { columns }: PostgresTable,
  column: string,
): string | undefined {
  const later = changes.slice(changes.indexOf(change) + 1);
  for (const each of later) if (each.is === 'rename column' && each.to === column) return each.from;
  return columns.some(({ name }) => name === column) ? column : undefined;
}

function defaultAction(column: Column): string {
  return column.default === undefined ? 'DROP DEFAULT' : `SET${defaultClause('postgres', column)}`;
}

/** A constant default is stored once for all existing rows; other values are filled in batches. */
function addColumnSteps(table: DeclaredTable, column: DeclaredColumn): readonly Step[] {
  const add = (added: Column, parts: Partial<Step> = {}) =>
    step(table.name, `add column ${column.name}`, {
      sql: [`ALTER TABLE ${identifier(table.name)} ADD COLUMN ${columnDefinition('postgres', added)}`],
      ...parts,
    });
  if (column.identity !== undefined)
    return [add(column, { class: 'rewriting', lock: 'everything', perRow: rewriteOf(table) })];
  if (column.nullable || column.default !== undefined) return [add(column)];
  // Without a value for them, rows would refuse the next step, and would have the column.
  const violations = column.fill === undefined ? [emptyViolation(table, column.name)] : [];
  return [add({ ...column, nullable: true }, { violations }), requireStep(table, column, 'added')];
}

/** Makes a column NOT NULL by a check that is validated without a lock, and makes another scan needless. */
function requireStep(table: DeclaredTable, column: DeclaredColumn, was: 'stored' | 'added'): Step {
  const { name } = table;
  const alter = `ALTER TABLE ${identifier(name)}`;
  const constraint = `${objectName(name, 'check', [column.name], 63 - REQUIRED_TAG.length - 2)}__${REQUIRED_TAG}`;
  const { fill } = column;
  return step(name, `refuse null in ${column.name}`, {
    class: 'checked',
    breaksOthers: true,
    sql: [
      `${alter} DROP CONSTRAINT IF EXISTS ${identifier(constraint)}, ADD CONSTRAINT ${identifier(constraint)} CHECK (${identifier(column.name)} IS NOT NULL) NOT VALID`,
      validate(name, constraint),
      `${alter} ALTER COLUMN ${identifier(column.name)} SET NOT NULL, DROP CONSTRAINT ${identifier(constraint)}`,
    ],
    perRow: fill === undefined ? PER_ROW.check : PER_ROW.fill,
    fill: fill === undefined ? undefined : { column: column.name, value: fill, after: 1 },
    violations: fill === undefined ? [missingViolation(table, column.name)] : [],
    what:
      was === 'added' && fill !== undefined
        ? `fill ${column.name} and refuse null in it`
        : `refuse null in ${column.name}`,
  });
}

function numberStep({ name }: DeclaredTable, current: PostgresTable, column: DeclaredColumn): Step {
  const of = `ALTER TABLE ${identifier(name)} ALTER COLUMN ${identifier(column.name)}`;
  const identity = column.identity?.toUpperCase();
  const wasNumbered = current.columns.some(
    (each) => each.name === column.name && each.identity !== undefined,
  );
  if (identity === undefined)
    return step(name, `stop numbering by ${column.name}`, { sql: [`${of} DROP IDENTITY`] });
  if (wasNumbered)
    return step(name, `change who numbers ${column.name}`, { sql: [`${of} SET GENERATED ${identity}`] });
  const sequence = `pg_get_serial_sequence(${textLiteral(identifier(name))}, ${textLiteral(column.name)})`;
  const next = `(SELECT coalesce(max(${identifier(column.name)}), 0) + 1 FROM ${identifier(name)})`;
  return step(name, `number the rows by ${column.name}`, {
    class: 'checked',
    sql: [
      `${of} DROP DEFAULT, ALTER COLUMN ${identifier(column.name)} SET NOT NULL, ALTER COLUMN ${identifier(column.name)} ADD GENERATED ${identity} AS IDENTITY;\nSELECT setval(${sequence}, ${next}, false)`,
    ],
    lock: 'everything',
    perRow: PER_ROW.check,
  });
}

function retypeStep(table: DeclaredTable, from: Column, column: DeclaredColumn): Step {
  const found = conversion('postgres', from, column);
  const of = `ALTER COLUMN ${identifier(column.name)}`;
  const collation = column.type === 'text' ? ' COLLATE "C"' : '';
  const type = `${of} TYPE ${column.type}${collation} USING ${found?.expression ?? ''}`;
  const actions = [
    `${of} DROP DEFAULT`,
    type,
    ...(column.default === undefined ? [] : [`${of} ${defaultAction(column)}`]),
  ];
  // A serial has no default, and its identity goes before the type changes.
  return step(table.name, `change the type of ${column.name} to ${column.type}`, {
    class: 'rewriting',
    breaksOthers: true,
    sql: [
      `ALTER TABLE ${identifier(table.name)} ${(from.identity === undefined ? actions : actions.slice(1)).join(', ')}`,
    ],
    lock: 'everything',
    perRow: rewriteOf(table),
    violations:
      found?.loses === undefined
        ? []
        : [
            {
              ...missingViolation(table, column.name),
              problem: `whose ${column.name} would change as a ${column.kind}`,
              where: found.loses,
            },
          ],
    obstacle: found === undefined ? noConversion(from, column) : undefined,
  });
}
