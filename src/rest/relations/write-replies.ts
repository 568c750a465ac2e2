import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import { StatementTimeError } from '../../core/errors.ts';
import { preferences } from '../../core/negotiation.ts';
import type { MaybePromise } from '../../core/scheduler.ts';
import { conflictFaults, conflictStatus, toldFaults } from '../../relations/rows/faults.ts';
import { RowsRefusedError } from '../../relations/rows/rows.ts';
import { type UpsertRule, WriteRefusedError } from '../../relations/rows/writes.ts';
import type { NestedCreates } from '../../relations/selections/nested-creates.ts';
import { tooLong } from '../relation-lists.ts';
import { tooManyResults } from './row-requests.ts';

/** Headers of a reply to a write. */
export type Headers = Readonly<Record<string, string>>;

/** The header that names an applied preference, if the request has it. */
export function resolved(ctx: RequestContext, { resolution }: UpsertRule): Headers {
  return preferences(ctx).has('resolution') ? { 'preference-applied': `resolution=${resolution}` } : {};
}

/** Whether a client wants no row in the reply. */
export function isMinimal(ctx: RequestContext): boolean {
  return ctx.headers.prefer !== undefined && preferences(ctx).get('return') === 'minimal';
}

/** A reply without the row. */
export function minimal(ctx: RequestContext, status: 200 | 201, headers: Headers): Reply {
  const isAsked = preferences(ctx).get('return') === 'minimal';
  const all = [headers['preference-applied'], isAsked ? 'return=minimal' : undefined].filter(Boolean);
  const applied = all.length === 0 ? {} : { 'preference-applied': all.join(', ') };
  return { status: status === 200 ? 204 : 201, type: '', body: '', headers: { ...headers, ...applied } };
}

/** Turns the refusal of nested rows by constraints into a 409 that points to the row. */
export async function placed<T>(creates: NestedCreates, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof RowsRefusedError)) throw error;
    const faults = error.conflicts.flatMap((each) => conflictFaults(each, creates.pointerOf(each.row)));
    throw new HttpProblem(conflictStatus(error.code), error.code, toldFaults(faults), {
      reasons: faults,
      cause: error,
    });
  }
}

/** Turns the refusal of a write by constraints into a 409 with all of them. */
export async function refusingConflicts(write: () => MaybePromise<Reply>): Promise<Reply> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof StatementTimeError) throw tooLong(error);
    if (error instanceof WriteRefusedError && error.reason === 'large') throw tooManyResults();
    if (!(error instanceof RowsRefusedError)) throw error;
    const { code, conflicts } = error;
    const isArray = conflicts.some(({ row }) => row > 0);
    const faults = conflicts.flatMap((conflict) =>
      conflictFaults(conflict, isArray ? `#/${conflict.row}` : '#'),
    );
    throw new HttpProblem(conflictStatus(code), code, toldFaults(faults), { reasons: faults, cause: error });
  }
}
