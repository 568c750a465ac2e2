import type { MaybePromise } from '../../core/scheduler.ts';
import { identifiers } from './ddl.ts';
import {
  type Column,
  type DeclaredCheck,
  type DeclaredColumn,
  type DeclaredTable,
  type Engine,
  type ForeignKey,
  type Index,
  identifier,
} from './tables.ts';

/**
 * What a step may do. `additive`: nothing can be lost or refused. `checked`: all rows have to fulfil a
 * condition, or other programs use the old name. `rewriting`: the table is written anew. `destructive`: values
 * are lost.
 */
export type StepClass = 'additive' | 'checked' | 'rewriting' | 'destructive';

/**
 * About how long a row of some hundred bytes takes, in microseconds: twice what a plain server with an SSD
 * took for 500,000 rows.
 */
export const PER_ROW = { check: 0.2, index: 1, refer: 1, rewrite: 2, fill: 15 } as const;

/** Rows that a step would refuse. */
export interface Violation {
  /** Completes `3 rows`: `with no value in pages`. */
  readonly problem: string;
  readonly key: readonly string[];
  readonly table: string;
  /** The condition that these rows fulfil; their table is `r`. */
  readonly where: string;
  /** What to do, as a sentence. Default: to change the rows first. */
  readonly remedy?: string;
}

/** One step of a migration. Steps of one plan run in order. */
export interface Step {
  readonly class: StepClass;
  readonly table: string;
  /** Completes a sentence that begins with the command: `add column subtitle`. */
  readonly what: string;
  /** Each text is one transaction. */
  readonly sql: readonly string[];
  /** What other connections wait for meanwhile. */
  readonly lock: 'nothing' | 'a moment' | 'writes' | 'everything';
  /** About how long each row takes, in microseconds; 0 if the time does not depend on the rows. */
  readonly perRow: number;
  readonly violations: readonly Violation[];
  /** Columns that get a value where they have none, in batches, after the statement of this number. */
  readonly fill?: { readonly column: string; readonly value: string; readonly after: number } | undefined;
  /** Whether processes with the declaration before the step may fail after it. Default: false. */
  readonly breaksOthers?: boolean | undefined;
  /** Whether it replaces a table of SQLite by a copy. Default: false. */
  readonly isRebuild?: boolean | undefined;
  /** Whether it edits the text of a table of SQLite. Default: false. */
  readonly isEdit?: boolean | undefined;
  /** Why the step cannot be made; undefined if it can. */
  readonly obstacle?: string | undefined;
}

/** The steps from a catalogue to a declaration. */
export interface Plan {
  readonly steps: readonly Step[];
  /** Columns and tables of relations that no longer are declared: `books.subtitle`, `loans`. */
  readonly undeclared: readonly string[];
}

/** A column to drop, or a whole table. */
export interface Loss {
  readonly table: string;
  readonly column: string | undefined;
  /** The declaration of the table; undefined if the relation was removed. */
  readonly declared: DeclaredTable | undefined;
}

/** The rows of a loss as JSON, some at a time. */
export interface ValueFile {
  write(lines: readonly string[]): void;
  /** Called once, after all rows and before the loss is committed. */
  complete(): void;
}

/** What a migration needs of an engine: one connection that no other migration has. */
export interface SchemaSession {
  readonly engine: Engine;
  plan(declared: readonly DeclaredTable[]): MaybePromise<Plan>;
  rows(sql: string): MaybePromise<readonly (readonly unknown[])[]>;
  /** About how many rows a table has. */
  rowsOf(table: string): MaybePromise<number>;
  /**
   * Which live processes may declare other relations than those with this fingerprint, and a remedy before a
   * migration, or before a drop, which processes with this declaration do not notice.
   */
  conflict(fingerprint: number, before: 'migration' | 'drop'): MaybePromise<string | undefined>;
  /** Runs `work` while no other process migrates the database. */
  exclusively<T>(work: () => MaybePromise<T>): MaybePromise<T>;
  /** Drops a column, or a table if no column is given, in one transaction that first completes its file. */
  drop(loss: Loss, file: ValueFile): MaybePromise<void>;
  /** Makes a step. A failure leaves the step undone, or done in a part that the next plan continues. */
  apply(step: Step): MaybePromise<void>;
}

/** An additive step with a short lock; `parts` override its defaults. */
export function step(table: string, what: string, parts: Partial<Step>): Step {
  return {
    class: 'additive',
    table,
    what,
    sql: [],
    lock: 'a moment',
    perRow: 0,
    violations: [],
    ...parts,
  };
}

/** The rows that a check refuses, of the values that an expression has. */
export function checkViolation(
  { name, key }: DeclaredTable,
  { column, on }: DeclaredCheck,
  expression: string = identifier(column),
): Violation {
  return {
    table: name,
    key,
    problem: `with a value in ${column} that the column does not allow`,
    where: `NOT (${on(expression)})`,
  };
}

export function missingViolation({ name, key }: DeclaredTable, column: string): Violation {
  return {
    table: name,
    key,
    problem: `with no value in ${column}`,
    where: `${identifier(column)} IS NULL`,
    remedy: `Give each a value, or declare a default for ${column}.`,
  };
}

/** All rows, for a new column that needs a value and has no default. */
export function emptyViolation({ name, key }: DeclaredTable, column: string): Violation {
  return {
    table: name,
    key,
    problem: `without a value for ${column}`,
    where: 'true',
    remedy: `Declare a default for ${column}, or make it nullable until all rows have a value.`,
  };
}

export function uniqueViolation({ name, key }: DeclaredTable, { columns }: Index, engine: Engine): Violation {
  const compared = (of: string, column: Index['columns'][number]) => {
    const reference = `${of}.${identifier(column.name)}`;
    if (!column.fold) return reference;
    return engine === 'sqlite' ? `${reference} COLLATE NOCASE` : `lower(${reference} COLLATE "C")`;
  };
  const equal = columns.map((column) => `${compared('other', column)} = ${compared('r', column)}`);
  const isOther = key.map((column) => `other.${identifier(column)} = r.${identifier(column)}`);
  const names = columns.map((column) => column.name).join(', ');
  return {
    table: name,
    key,
    problem: `with the same ${names} as another row`,
    where: `EXISTS (SELECT 1 FROM ${identifier(name)} AS other WHERE ${equal.join(' AND ')} AND NOT (${isOther.join(' AND ')}))`,
  };
}

export function referenceViolation({ name, key }: DeclaredTable, of: ForeignKey): Violation {
  const equal = of.columns.map(
    (column, at) => `target.${identifier(of.targetColumns[at] ?? '')} = r.${identifier(column)}`,
  );
  const isSet = of.columns.map((column) => `r.${identifier(column)} IS NOT NULL`);
  return {
    table: name,
    key,
    problem: `whose ${of.columns.join(', ')} refers to no row of ${of.table}`,
    where: `${isSet.join(' AND ')} AND NOT EXISTS (SELECT 1 FROM ${identifier(of.table)} AS target WHERE ${equal.join(' AND ')})`,
  };
}

/** Counts the rows of a violation, or names some by their key. */
export function violationQuery({ table, key, where }: Violation, of: 'count' | 'first five'): string {
  const from = `FROM ${identifier(table)} AS r WHERE ${where}`;
  return of === 'count'
    ? `SELECT count(*) ${from}`
    : `SELECT ${identifiers(key)} ${from} ORDER BY ${identifiers(key)} LIMIT 5`;
}

/** How the values of one type become those of another. */
interface Conversion {
  readonly expression: string;
  /** The condition that a value fulfils which would change its meaning; undefined if none does. */
  readonly loses?: string;
}

const UUID = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
const digitsOf = (kind: string) => /^decimal(\d+)$/.exec(kind)?.[1];
const isWhole = (kind: string) => ['integer', 'bigint', 'serial'].includes(kind);
const isText = (kind: string) => ['text', 'enum'].includes(kind);

/** The conversion of a column; undefined if there is none that keeps the meaning of the values. */
export function conversion(engine: Engine, from: Column, to: DeclaredColumn): Conversion | undefined {
  const value = identifier(to.name);
  const isSqlite = engine === 'sqlite';
  const [before, after] = [digitsOf(from.kind) ?? (isWhole(from.kind) ? '0' : undefined), digitsOf(to.kind)];
  if (isWhole(from.kind) && isWhole(to.kind)) return { expression: value };
  if (before !== undefined && after !== undefined) {
    const shift = Number(after) - Number(before);
    const unit = `1${'0'.repeat(Math.abs(shift))}`;
    if (!isSqlite) {
      const [, precision = '18'] = /^numeric\((\d+),/.exec(to.type) ?? [];
      const limit = `1${'0'.repeat(Number(precision) - Number(after))}`;
      return {
        expression: value,
        loses: `${value} <> round(${value}, ${after}) OR abs(${value}) >= ${limit}`,
      };
    }
    if (shift >= 0) return { expression: `${value} * ${unit}` };
    return { expression: `${value} / ${unit}`, loses: `${value} % ${unit} <> 0` };
  }
  if (isText(to.kind) && (isText(from.kind) || isWhole(from.kind) || ['date', 'uuid'].includes(from.kind)))
    return { expression: isSqlite ? `CAST(${value} AS TEXT)` : `${value}::text` };
  if (isText(from.kind) && to.kind === 'uuid')
    return isSqlite
      ? { expression: value }
      : { expression: `${value}::uuid`, loses: `${value} !~ '${UUID}'` };
  if (isWhole(from.kind) && to.kind === 'number')
    return {
      expression: isSqlite ? `CAST(${value} AS REAL)` : `${value}::double precision`,
      loses: `${value} NOT BETWEEN -9007199254740992 AND 9007199254740992`,
    };
  return from.kind === to.kind ? { expression: value } : undefined;
}

/** Why a column cannot get its declared type. */
export function noConversion(from: Column, { name, kind }: DeclaredColumn): string {
  return `values of ${name} cannot become ${kind} from ${from.kind}; declare a column with another name, and drop ${name} once the values are there`;
}
