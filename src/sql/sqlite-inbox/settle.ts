import { type ClaimedJob, QUARANTINE_CRASHES } from '../../inbox/delivery.ts';
import type { Outcome } from '../../inbox/inbox.ts';
import { HEAD_START } from '../inbox-sql.ts';
import type { Step } from '../sqlite-writer/batch.ts';

/**
 * Whether a job whose lease has ended belonged to another owner than ?1, whose process must have crashed or
 * stalled.
 */
const CRASHED = '(owner IS NOT NULL AND owner <> ?1)';
/** The crashes of a job, including one found by this claim. */
const CRASHES = `crashes + ${CRASHED}`;

// Claims due jobs that are not blocked and that the owner is not still running (?6). ?7 bounds the bodies,
// except the first. The limit is written `?5 + 0` because a bare parameter is part of the plan: SQLite would
// prepare the statement again for each run, at ten times the cost of a small claim.
const claim = (index: string, condition: string) => `
    UPDATE jobs SET owner = ?1, claimed_at = ?4, due_at = ?2, attempts = attempts + NOT ${CRASHED}, crashes = ${CRASHES}
    WHERE seq IN (SELECT seq FROM (
      SELECT seq, row_number() OVER oldest AS nth, sum(bytes) OVER oldest AS total FROM (
      SELECT seq, due_at, (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = due.delivery) AS bytes
      FROM jobs AS due INDEXED BY ${index}
      WHERE target = ?3 AND status = 'open' AND NOT blocked AND due_at <= ?4 AND ${condition}
        AND (owner IS NULL OR seq NOT IN (SELECT value FROM json_each(?6)))
      ORDER BY due_at, seq LIMIT ?5 + 0)
      WINDOW oldest AS (ORDER BY due_at, seq ROWS UNBOUNDED PRECEDING))
      WHERE nth = 1 OR total <= ?7)
    RETURNING seq, attempts, crashes, delivery, order_key IS NOT NULL, priority`;

/** Matches only the claim that an outcome belongs to. */
const FENCE = 'seq = ? AND owner = ? AND attempts = ? AND crashes = ?';

/** The statements that claim jobs and record outcomes. */
export const JOB_WRITES = {
  claimJobs: claim('jobs_due', `${CRASHES} < ${QUARANTINE_CRASHES}`),
  claimQuarantined: claim('jobs_quarantined', `crashes > 0 AND ${CRASHES} >= ${QUARANTINE_CRASHES}`),
  finishJob: `
    UPDATE jobs SET status = ?, error = ?, finished_at = ?, duration = ?, ended_by = owner, owner = NULL
    WHERE ${FENCE}`,
  // Follows the end of job ?3 in the same write; if that was recorded, claims the next job with its order
  // key.
  claimNext: `
    UPDATE jobs SET owner = ?1, claimed_at = ?4, due_at = ?2, attempts = attempts + 1
    WHERE changes() > 0 AND seq = (
      SELECT next.seq FROM jobs AS ended JOIN jobs AS next INDEXED BY jobs_head USING (target, order_key)
      WHERE ended.seq = ?3 AND next.status = 'open' AND NOT next.blocked AND next.order_key IS NOT NULL)
      AND owner IS NULL AND due_at <= ?4 AND crashes < ${QUARANTINE_CRASHES}
      AND (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = jobs.delivery) <= ?5
    RETURNING seq, attempts, crashes, delivery, order_key IS NOT NULL`,
  retryJob: `
    UPDATE jobs SET due_at = ?, error = ?, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  releaseJob: `
    UPDATE jobs SET due_at = ? - ${HEAD_START}, attempts = attempts - 1, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  recordCrash: `
    UPDATE jobs SET due_at = ? - ${HEAD_START}, attempts = attempts - 1, crashes = crashes + 1, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  // Follows the outcome of an attempt in the same write; adds nothing if the lease was lost.
  recordAttempt: `
    INSERT INTO attempts (job, attempt, outcome, started_at, duration, process, status, answer, error)
    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE changes() > 0`,
  // Keeps only the last `?2` entries of the job `?1`.
  trimAttempts: `
    DELETE FROM attempts
    WHERE job = ?1 AND seq <= (SELECT seq FROM attempts WHERE job = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`,
} as const;

/** Records a success without an answer in the row of the job. */
export function doneStep(
  { job, attempt, crashes }: ClaimedJob,
  owner: string,
  duration: number | null,
  now: number,
): Step {
  return { statement: 'finishJob', values: ['done', null, now, duration, job, owner, attempt, crashes] };
}

/**
 * The steps that record how an attempt of `owner` ended at `now`; the first step's rows show whether the
 * lease still held. `next` is a step that relies on `changes()` for the same.
 */
export function settleSteps(
  claimed: ClaimedJob,
  owner: string,
  outcome: Outcome,
  now: number,
  next?: Step,
): readonly Step[] {
  const { job, attempt, crashes } = claimed;
  const fence = [job, owner, attempt, crashes];
  const { kind, trace } = outcome;
  // A success without an answer is recorded in the row of the job, a crash by its own statement.
  const isOwnRow = trace !== undefined && (kind !== 'done' || trace.answer !== null) && kind !== 'crashed';
  const settled = (): Step => {
    switch (outcome.kind) {
      case 'done':
        return doneStep(claimed, owner, isOwnRow ? null : (trace?.duration ?? null), now);
      case 'dead':
        return { statement: 'finishJob', values: ['dead', outcome.error, now, null, ...fence] };
      case 'retry':
        return { statement: 'retryJob', values: [now + outcome.wait, outcome.error, ...fence] };
      case 'released':
        return { statement: 'releaseJob', values: [now, ...fence] };
      case 'crashed':
        return { statement: 'recordCrash', values: [now, ...fence] };
    }
  };
  const following = next === undefined ? [] : [next];
  if (!isOwnRow) return [settled(), ...following];
  const { duration, answer, kept } = trace;
  const error = 'error' in outcome ? outcome.error : null;
  const entry = [job, attempt, kind, now - duration, duration, owner];
  return [
    settled(),
    {
      statement: 'recordAttempt',
      values: [...entry, answer?.status ?? null, answer?.body ?? null, error],
    },
    ...following,
    { statement: 'trimAttempts', values: [job, kept] },
  ];
}

/** Removes the entries of the delivery `?`. */
export const REMOVE_ATTEMPTS = `
  DELETE FROM attempts WHERE job IN (SELECT seq FROM jobs WHERE delivery = ?)`;
