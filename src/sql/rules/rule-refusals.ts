import { columnsRead, computedValue } from '../../relations/hooks/computed.ts';
import type { Value } from '../../relations/relation.ts';
import { RowsRefusedError } from '../../relations/rows/rows.ts';
import {
  EarlierValue,
  type Given,
  type RowWrite,
  replacedIn,
  WriteRefusedError,
} from '../../relations/rows/writes.ts';
import { isAll } from '../../relations/rules/rule-trees.ts';
import type { BoundText } from '../dialects/row-dialects.ts';
import type { RowSql } from '../relations/row-sql.ts';
import { givenMeets } from './judge.ts';
import { additionOf, type RuledWrite } from './ruled-writes.ts';

/** Reads the first row of each statement behind the earlier writes; undefined if these fail meanwhile. */
export type ReadRows = (
  statements: readonly BoundText[],
) => Promise<readonly (readonly unknown[] | undefined)[] | undefined>;

/** The statement of a write that was refused. */
interface Refused {
  /** Index of the write. */
  readonly nth: number;
  /** Whether it is the check behind the write, and whether a constraint has refused it. */
  readonly isCheck: boolean;
  readonly isConflict: boolean;
  readonly read: ReadRows;
}

/** The refusal of a write that a rule does not allow. */
export function notAllowed(row: number): RowsRefusedError {
  return new RowsRefusedError([{ code: 'NOT_ALLOWED', row }]);
}

/**
 * Why rules refuse a write: first as the row is that is there, then as it would be. Constraints are asked later, so that
 * a caller does not learn from them of rows that it could not write. Undefined if rules do not refuse it, and without a
 * refusal if that cannot be said any more.
 */
export async function ruleRefusal(
  { write, sql }: { readonly write: RowWrite; readonly sql: RowSql },
  rules: RuledWrite,
  { nth, isCheck, isConflict, read }: Refused,
): Promise<{ readonly write?: Error } | undefined> {
  const { on, given, creates, keeps } = placeOf(sql, write);
  const rows = [undefined, rules.found, rules.may].flatMap(
    (condition) => sql.find(on, given, additionOf(sql, condition)) ?? [],
  );
  const answers = write.is === 'create' ? [] : await read(rows);
  if (answers === undefined) return {};
  const [there, found, may] = answers;
  if (!creates && found === undefined) return { write: new WriteRefusedError(nth, 'missing') };
  if (found !== undefined && !keeps && may === undefined) return { write: notAllowed(nth) };
  const stored = found === undefined || there === undefined ? undefined : sql.row(there);
  const isReplaced = write.is === 'put' && write.rule.replaces;
  if (stored !== undefined && !meetsVersion(write, stored.version))
    return { write: new WriteRefusedError(nth, 'refused') };
  if (stored !== undefined && write.is === 'put' && !isReplaced)
    return { write: new WriteRefusedError(nth, 'refused') };
  if (write.is === 'remove') return undefined;
  // A row that the caller does not find would have to be a new one.
  const [row, condition] =
    stored === undefined
      ? [givenRow(write), rules.created]
      : [changedRow(sql, write, stored.values), keeps ? undefined : rules.changed];
  if (condition !== undefined && !isAll(condition)) {
    const met = await read([givenMeets(sql, row, condition)]);
    if (met === undefined) return {};
    if (met[0] === undefined) return { write: notAllowed(nth) };
  }
  const isHidden = there !== undefined && found === undefined;
  const isOther = write.is === 'upsert' && write.merged !== undefined && !isCheck && !isConflict;
  if (!isHidden && !(isOther && stored !== undefined)) return undefined;
  return { write: new RowsRefusedError([{ code: 'TAKEN', row: nth, columns: on }]) };
}

/** How a write finds the row that is there, and whether it creates one otherwise, or keeps what it finds. */
function placeOf(sql: RowSql, write: RowWrite) {
  const { key } = sql.relation;
  if (write.is === 'change' || write.is === 'remove')
    return { on: key, given: write.key, creates: false, keeps: false };
  const on = write.is === 'upsert' ? write.on : key;
  return {
    on,
    given: on.map((column) => write.row[sql.indexOf(column)] ?? null),
    creates: write.is !== 'put' || write.rule.creates,
    keeps: write.is === 'upsert' ? write.merged === undefined : write.is === 'put' && !write.rule.replaces,
  };
}

function givenRow(write: Exclude<RowWrite, { readonly is: 'remove' }>): readonly Given[] {
  return write.is === 'change' ? [] : write.row;
}

/** The row that is there as it would be after a write. */
function changedRow(
  sql: RowSql,
  write: Exclude<RowWrite, { readonly is: 'remove' }>,
  stored: readonly Given[],
): readonly Given[] {
  if (write.is === 'create') return write.row;
  if (write.is === 'change')
    return recomputed(
      sql,
      stored.map((value, i) => (write.patch.has(i) ? (write.patch.get(i) ?? null) : value)),
    );
  const replaced =
    write.is === 'upsert' ? (write.merged ?? []) : (write.replaced ?? replacedIn(sql.relation));
  return recomputed(
    sql,
    stored.map((value, i) => (replaced.includes(i) ? (write.row[i] ?? null) : value)),
  );
}

/** A changed row with its computed columns, as far as what they read is known before the transaction. */
function recomputed(sql: RowSql, row: readonly Given[]): readonly Given[] {
  const valueIn = (name: string) => row[sql.indexOf(name)] ?? null;
  return sql.relation.columns.map(({ computed }, i) =>
    computed === undefined || columnsRead(computed).some((name) => valueIn(name) instanceof EarlierValue)
      ? (row[i] ?? null)
      : computedValue(computed, (name) => valueIn(name) as Value),
  );
}

/** Whether a version meets the condition of a write. */
function meetsVersion(write: RowWrite, version: number): boolean {
  const condition =
    write.is === 'put' ? write.rule.condition : 'condition' in write ? write.condition : undefined;
  const { versions, before } = condition ?? {};
  return (versions?.includes(version) ?? true) && (before === undefined || version < before);
}
