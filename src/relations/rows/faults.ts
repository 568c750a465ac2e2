import { MAX_FAULTS } from '../given-values.ts';
import type { RowConflict, RowFault } from './rows.ts';

/** The faults that a refusal lists. */
export function listedFaults(
  faults: readonly RowFault[],
  max: number = MAX_FAULTS.listed,
): readonly RowFault[] {
  return faults.slice(0, max).map(({ detail, pointer, reason }) => ({
    detail,
    pointer,
    ...(reason !== undefined && { reason }),
  }));
}

/** The code of the refusal of a row with faults. */
export function faultCode(faults: readonly RowFault[]): 'NOT_ALLOWED' | 'INVALID_ROW' {
  return faults.some(({ code }) => code !== undefined) ? 'NOT_ALLOWED' : 'INVALID_ROW';
}

/** The status of a refusal by a constraint or a rule. */
export function conflictStatus(code: RowConflict['code']): 400 | 403 | 409 | 503 {
  if (code === 'NOT_ALLOWED') return 403;
  if (code === 'HOOK_TIMEOUT') return 503;
  return code === 'INVALID_ROW' || code === 'LIMIT_EXCEEDED' ? 400 : 409;
}

/** The message of a refusal: its first faults, and how many more there are. */
export function toldFaults(faults: readonly RowFault[], max: number = MAX_FAULTS.listed): string {
  // A conflict of several columns is one sentence for all of them.
  const all = [...new Set(faults.map(({ detail }) => detail))];
  const first = all.slice(0, MAX_FAULTS.told);
  const more = all.length - first.length;
  // No more are looked for.
  const least = faults.length < max ? '' : 'at least ';
  return `${first.join('; ')}${more > 0 ? `; and ${least}${more} more` : ''}`;
}

/** The faults of a conflict: one for each of its columns; `at` is the pointer of the row. */
export function conflictFaults(conflict: RowConflict, at: string): readonly RowFault[] {
  if ('faults' in conflict)
    return conflict.faults.map((fault) => ({ ...fault, pointer: at + fault.pointer.replace(/^#/, '') }));
  if (conflict.code === 'REFERENCED') {
    const { by } = conflict;
    const whose = by === undefined ? 'of other relations' : `of ${by}`;
    return [{ detail: `rows ${whose} refer to this row`, pointer: at }];
  }
  if (conflict.code === 'NOT_ALLOWED')
    return [{ detail: 'a rule does not let the caller write this row', pointer: at }];
  const { columns } = conflict;
  const named = columns.join(' and ');
  const detail =
    conflict.code === 'TAKEN'
      ? `another row has the same ${named}`
      : `${conflict.to} has no row with this key (${named})`;
  return columns.map((column) => ({ detail, pointer: `${at}/${column}` }));
}
