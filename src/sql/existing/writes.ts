import type { Relation } from '../../relations/relation.ts';
import { type RowConflict, RowsRefusedError } from '../../relations/rows/rows.ts';
import type { RowWrite } from '../../relations/rows/writes.ts';
import type { BoundText } from '../dialects/row-dialects.ts';
import type { RowSql } from '../relations/row-sql.ts';

/** The constraint that refused a statement, as far as the engine names it. */
export interface FoundConstraint {
  readonly name: string | undefined;
  /** The columns, if the engine names them itself. */
  readonly columns: readonly string[] | undefined;
  readonly isUnique: boolean;
}

/**
 * Why the database refused a row of a table that Portico has not made, whose constraints it does not know all. No text of
 * the engine passes, but the name of a constraint that the catalogue has. Undefined for tables of Portico.
 */
export function databaseRefusal(
  { existing, columns }: Relation,
  row: number,
  { name = '', isUnique, ...found }: FoundConstraint,
): RowsRefusedError | undefined {
  if (existing === undefined) return undefined;
  const known = existing.constraints.get(name);
  const named = (found.columns ?? known ?? []).filter((each) =>
    columns.some((column) => column.name === each),
  );
  if (isUnique && named.length > 0) return new RowsRefusedError([{ code: 'TAKEN', row, columns: named }]);
  const what =
    known === undefined ? 'The database' : `The constraint ${JSON.stringify(name)} of the database`;
  const detail = `${what} refuses ${named.length === 0 ? 'the row' : named.join(' and ')}`;
  const pointers = named.length === 0 ? ['#'] : named.map((column) => `#/${column}`);
  const conflict: RowConflict = {
    code: 'INVALID_ROW',
    row,
    faults: pointers.map((pointer) => ({ detail, pointer })),
  };
  return new RowsRefusedError([conflict]);
}

/** Throws RowsRefusedError for a write to a view. */
export function requireTable({ name, existing }: Relation, row: number): void {
  if (existing?.isView !== true) return;
  const detail = `${name} is a view, whose rows are only read`;
  throw new RowsRefusedError([{ code: 'INVALID_ROW', row, faults: [{ detail, pointer: '#' }] }]);
}

/** A statement without rows. */
export const NONE: BoundText = { text: 'SELECT 1 WHERE 1 = 0', values: [] };

/** Whether only a look before an insert tells a new row from a changed one, which has no higher version. */
export function asksFirst({ keepsVersion }: RowSql, write: RowWrite): boolean {
  if (keepsVersion) return false;
  if (write.is === 'upsert') return write.merged !== undefined;
  return write.is === 'put' && write.rule.creates && write.rule.replaces;
}
