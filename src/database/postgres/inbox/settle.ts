import type { Outcome } from '../../../inbox/inbox.ts';
import type { Server } from '../pool/server.ts';
import { storable } from '../text.ts';

/** How an attempt ended. The job, its owner and its attempt together are the fence. */
export interface Settlement {
  readonly job: number;
  readonly owner: string;
  readonly attempt: number;
  readonly outcome: Outcome;
  readonly now: number;
}

const SETTLE = {
  name: 'settle',
  text: `
    UPDATE jobs SET
      owner = NULL,
      status = CASE kind WHEN 'retry' THEN jobs.status WHEN 'released' THEN jobs.status ELSE kind END,
      error = CASE kind WHEN 'released' THEN jobs.error ELSE given.error END,
      due_at = coalesce(given.due_at, jobs.due_at),
      finished_at = coalesce(given.finished_at, jobs.finished_at),
      attempts = CASE kind WHEN 'released' THEN jobs.attempts - 1 ELSE jobs.attempts END
    FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
      WITH ORDINALITY AS given (seq, owner, attempt, kind, error, due_at, finished_at, nth)
    WHERE jobs.seq = given.seq AND jobs.owner = given.owner AND jobs.attempts = given.attempt
    RETURNING given.nth`,
};

const IS_SETTLED = {
  name: 'is-settled',
  text: `
    SELECT 1 FROM jobs
    WHERE seq = $1 AND owner IS NULL AND attempts = $2 AND coalesce(finished_at, due_at) = $3`,
};

/** Records outcomes in one statement; resolves to whether each was recorded. */
export async function settleAll(
  server: Server,
  settlements: readonly Settlement[],
): Promise<readonly boolean[]> {
  const rows = await server.write(SETTLE, [
    settlements.map(({ job }) => job),
    settlements.map(({ owner }) => owner),
    settlements.map(({ attempt }) => attempt),
    settlements.map(({ outcome }) => outcome.kind),
    settlements.map(({ outcome }) => ('error' in outcome ? storable(outcome.error) : null)),
    settlements.map(({ outcome, now }) => dueAt(outcome, now)),
    settlements.map(({ outcome, now }) => (outcome.kind === 'done' || outcome.kind === 'dead' ? now : null)),
  ]);
  const recorded = new Set(rows.map(([nth]) => nth));
  return settlements.map((_, i) => recorded.has(i + 1));
}

/** The new due time of the job; null when it does not change. */
function dueAt(outcome: Outcome, now: number): number | null {
  if (outcome.kind === 'retry') return now + outcome.wait;
  return outcome.kind === 'released' ? now : null;
}

/** Whether this outcome is recorded already: an earlier try may have committed without an answer. */
export async function isSettled(
  server: Server,
  { job, attempt, outcome, now }: Settlement,
): Promise<boolean> {
  const attempts = outcome.kind === 'released' ? attempt - 1 : attempt;
  const rows = await server.read(IS_SETTLED, [job, attempts, dueAt(outcome, now) ?? now]);
  return rows.length > 0;
}
