import { DatabaseOpenError, ExpectedError } from '../../core/errors.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import type { Relation } from '../../relations/relation.ts';
import {
  type Plan,
  type SchemaSession,
  type Step,
  type StepClass,
  type Violation,
  violationQuery,
} from './steps.ts';
import { declaredTables, fingerprintOf } from './tables.ts';

/** A step cannot be made; the message says why and what to do. */
export class SchemaError extends ExpectedError {
  override readonly name = 'SchemaError';
  readonly code = 'SCHEMA_STEP';
}

/** What the start of a service does to the tables of relations. */
export type StartMode = 'additive' | 'never' | 'all-but-drops';

/**
 * Prepares the tables of relations for a start: makes all steps that the mode allows, or none if any other is
 * left. Returns the columns and tables that no longer are declared. Fails with DatabaseOpenError.
 */
export function prepareRelations(
  session: SchemaSession,
  relations: readonly Relation[],
  mode: StartMode,
): MaybePromise<readonly string[]> {
  const prepare = ({ steps, undeclared }: Plan) => {
    const left = steps.filter((step) => mode === 'never' || step.class !== 'additive');
    if (left.length > 0) {
      const list = left.map(({ table, what }) => `${table}: ${what}`).join('; ');
      throw new DatabaseOpenError(
        `its tables are not those of the declared relations (${list}). Run "portico migrate --check" to see the steps, and "portico migrate" to make them.`,
      );
    }
    return whenReady(applyAll(session, steps), () => undeclared);
  };
  return whenReady(planRelations(session, relations), (plan) => {
    if (plan.steps.length === 0) return plan.undeclared;
    if (mode === 'all-but-drops') return prepareFully(session, relations);
    // Another process may have made the steps while this one waited.
    return session.exclusively(() => whenReady(planRelations(session, relations), prepare));
  });
}

async function prepareFully(
  session: SchemaSession,
  relations: readonly Relation[],
): Promise<readonly string[]> {
  try {
    await migrateRelations(session, relations, { rewrite: true });
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    throw new DatabaseOpenError(`its tables are not those of the declared relations. ${error.message}`, {
      cause: error,
    });
  }
  return (await planRelations(session, relations)).undeclared;
}

function applyAll(session: SchemaSession, [next, ...rest]: readonly Step[]): MaybePromise<void> {
  return next === undefined ? undefined : whenReady(session.apply(next), () => applyAll(session, rest));
}

/** The steps that relations need; changes nothing. */
export function planRelations(session: SchemaSession, relations: readonly Relation[]): MaybePromise<Plan> {
  return session.plan(declaredTables(session.engine, relations));
}

/** Exit codes of a check: nothing to do, additive steps only, and any other step. */
export function checkExitCode({ steps }: Plan): 0 | 3 | 4 {
  if (steps.length === 0) return 0;
  return steps.every((step) => step.class === 'additive') ? 3 : 4;
}

export interface MigrateOptions {
  /** Whether to make steps that write a table anew. */
  readonly rewrite: boolean;
  /** How long nothing may be written during a step, by an estimate, in seconds. Default: 2. */
  readonly maxPause?: number | undefined;
  /** Called before each step. */
  readonly onStep?: (step: Step) => MaybePromise<void>;
}

/**
 * Makes the steps that relations need; resolves to those made. Each step first counts the rows that it would
 * refuse. Fails with SchemaError before the first step if one needs `rewrite` or cannot be made, or at a step
 * that rows refuse; the steps before stay made, and another call goes on.
 */
export async function migrateRelations(
  session: SchemaSession,
  relations: readonly Relation[],
  options: MigrateOptions,
): Promise<readonly Step[]> {
  const made: Step[] = [];
  await session.exclusively(() => makeSteps(session, relations, options, made));
  return made;
}

async function makeSteps(
  session: SchemaSession,
  relations: readonly Relation[],
  { rewrite, maxPause = MAX_PAUSE, onStep }: MigrateOptions,
  made: Step[],
): Promise<void> {
  const { steps } = await planRelations(session, relations);
  const allowed: readonly StepClass[] = ['additive', 'checked', ...(rewrite ? (['rewriting'] as const) : [])];
  for (const each of steps) {
    const { table, what, obstacle, ...step } = each;
    if (obstacle !== undefined) throw new SchemaError(`${table}: cannot ${what}: ${obstacle}`);
    if (!allowed.includes(step.class))
      throw new SchemaError(
        `${table}: all rows have to be written anew to ${what.replace(/^make the table anew to /, '')}. Run "portico migrate --rewrite" to allow that.`,
      );
    await requirePause(session, each, maxPause);
  }
  if (steps.some(({ breaksOthers }) => breaksOthers)) await requireAgreement(session, relations, 'migration');
  for (const step of steps) {
    // Its table may have got its name by a step before.
    await requirePause(session, step, maxPause);
    await onStep?.(step);
    for (const violation of step.violations) await requireNone(session, step, violation);
    await session.apply(step);
    made.push(step);
  }
}

/** The pause that a migration may make without asking, in seconds. */
const MAX_PAUSE = 2;

/** About how long a step takes, in seconds. */
async function secondsOf(session: SchemaSession, { table, perRow }: Step): Promise<number> {
  return perRow === 0 ? 0 : ((await session.rowsOf(table)) * perRow) / 1e6;
}

async function requirePause(session: SchemaSession, step: Step, maxPause: number): Promise<void> {
  if (step.lock !== 'writes' && step.lock !== 'everything') return;
  const seconds = await secondsOf(session, step);
  if (seconds <= maxPause) return;
  const waits = step.lock === 'writes' ? 'can be written' : 'can use the table';
  throw new SchemaError(
    `${step.table}: ${step.what} takes about ${Math.ceil(seconds)} s, in which nothing ${waits}. Run "portico migrate --max-pause ${Math.ceil(seconds)}" to allow that.`,
  );
}

/** Fails with SchemaError while other processes would fail without what a step takes away. */
export async function requireAgreement(
  session: SchemaSession,
  relations: readonly Relation[],
  before: 'migration' | 'drop',
): Promise<void> {
  const conflict = await session.conflict(fingerprintOf(relations), before);
  if (conflict !== undefined) throw new SchemaError(conflict);
}

async function requireNone(
  session: SchemaSession,
  { table, what }: Step,
  violation: Violation,
): Promise<void> {
  const [first] = await session.rows(violationQuery(violation, 'count'));
  const count = Number(first?.[0]);
  if (count === 0) return;
  const keys = await session.rows(violationQuery(violation, 'first five'));
  const list = keys.map((key) => key.map((part) => JSON.stringify(part)).join(',')).join(' ');
  const rows = count === 1 ? '1 row' : `${count} rows`;
  throw new SchemaError(
    `${table}: cannot ${what} because of ${rows} ${violation.problem}, by ${violation.key.join(',')}: ${list}${count > 5 ? ' ...' : ''}. ${violation.remedy ?? `Change ${count === 1 ? 'it' : 'them'} first.`}`,
  );
}

/** A plan for people: each step with its class, rows, lock and SQL. */
export async function describePlan(session: SchemaSession, { steps, undeclared }: Plan): Promise<string> {
  const lines: string[] = [];
  for (const step of steps) {
    const seconds = Math.ceil(await secondsOf(session, step));
    const time = seconds <= 1 ? 'under 1 s' : `about ${seconds} s`;
    const exists = step.perRow > 0 ? `, reads about ${await session.rowsOf(step.table)} rows in ${time}` : '';
    lines.push(`${step.table}: ${step.what} (${step.class}${exists}, locks ${step.lock})`);
    if (step.obstacle !== undefined) lines.push(`  cannot be made: ${step.obstacle}`);
    for (const text of step.sql) lines.push(`${text};`.replaceAll(/^/gm, '  '));
  }
  for (const name of undeclared)
    lines.push(
      `${name} is not declared; it stays and is not served. To remove it: portico migrate --drop ${name}`,
    );
  return lines.map((line) => `${line}\n`).join('');
}
