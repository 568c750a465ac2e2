import type { DatabaseSync } from 'node:sqlite';
import { type ClaimedJob, QUARANTINE_CRASHES } from '../../inbox/delivery.ts';
import type { Answer, Outcome } from '../../inbox/inbox.ts';
import { HEAD_START } from '../inbox-sql.ts';
import { type Programs, prepareStep, type RunStep, type Step } from '../sqlite-writer/batch.ts';

/**
 * Whether a job whose lease has ended belonged to another owner than ?1, whose process must have crashed or
 * stalled.
 */
const CRASHED = '(owner IS NOT NULL AND owner <> ?1)';
/** The crashes of a job, including one found by this claim. */
const CRASHES = `crashes + ${CRASHED}`;

// The due jobs that are not blocked and that the owner is not still running (?5), oldest first, with the sizes of their
// bodies. The limit is written `?4 + 0` because a bare parameter is part of the plan: SQLite would prepare the statement
// again for each run, at ten times the cost of a small claim.
const due = (index: string, condition: string) => `
    SELECT seq, (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = due.delivery)
    FROM jobs AS due INDEXED BY ${index}
    WHERE target = ?2 AND status = 'open' AND NOT blocked AND due_at <= ?3 AND ${condition}
      AND (owner IS NULL OR seq NOT IN (SELECT value FROM json_each(?5)))
    ORDER BY due_at, seq LIMIT ?4 + 0`;

/** The statements of a claim. */
const CLAIM = {
  claimJobs: due('jobs_due', `${CRASHES} < ${QUARANTINE_CRASHES}`),
  claimQuarantined: due('jobs_quarantined', `crashes > 0 AND ${CRASHES} >= ${QUARANTINE_CRASHES}`),
  lease: `
    UPDATE OR FAIL jobs SET owner = ?1, claimed_at = ?2, due_at = ?3, attempts = attempts + NOT ${CRASHED}, crashes = ${CRASHES}
    WHERE seq IN (SELECT value FROM json_each(?4))
    RETURNING seq, attempts, crashes, delivery, order_key IS NOT NULL, priority`,
} as const;

/**
 * Creates the steps that claim jobs. Their values are the owner, the end of the lease, the target, the time, the maximum
 * number of jobs, those that the owner is running as JSON, and the maximum size of the bodies except the first.
 */
export function claimSteps(db: DatabaseSync): Programs['steps'] {
  const lease = prepareStep(db, CLAIM.lease);
  const claim = (sql: string): RunStep => {
    const find = prepareStep(db, sql);
    return ([owner = null, until = null, target = null, now = null, limit = null, held = null, maxBytes]) => {
      const taken: unknown[] = [];
      let bytes = 0;
      for (const [seq, size] of find([owner, target, now, limit, held])) {
        bytes += Number(size);
        if (bytes > Number(maxBytes) && taken.length > 0) break;
        taken.push(seq);
      }
      return taken.length === 0 ? [] : lease([owner, now, until, JSON.stringify(taken)]);
    };
  };
  return { claimJobs: claim(CLAIM.claimJobs), claimQuarantined: claim(CLAIM.claimQuarantined) };
}

/** Matches only the claim that an outcome belongs to. */
const FENCE = 'seq = ? AND owner = ? AND attempts = ? AND crashes = ?';

/**
 * The statements that record outcomes. OR FAIL, as in claims, because SQLite keeps a copy of every page to undo a
 * statement with triggers that fails halfway; a write that fails is undone anyway.
 */
export const JOB_WRITES = {
  finishJob: `
    UPDATE OR FAIL jobs SET status = ?, error = ?, finished_at = ?, duration = ?, answer_status = ?, answer = ?,
      ended_by = owner, owner = NULL
    WHERE ${FENCE}`,
  // Follows the end of job ?3 in the same write; if that was recorded, claims the next job with its order
  // key.
  claimNext: `
    UPDATE OR FAIL jobs SET owner = ?1, claimed_at = ?4, due_at = ?2, attempts = attempts + 1
    WHERE changes() > 0 AND seq = (
      SELECT next.seq FROM jobs AS ended JOIN jobs AS next INDEXED BY jobs_head USING (target, order_key)
      WHERE ended.seq = ?3 AND next.status = 'open' AND NOT next.blocked AND next.order_key IS NOT NULL)
      AND owner IS NULL AND due_at <= ?4 AND crashes < ${QUARANTINE_CRASHES}
      AND (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = jobs.delivery) <= ?5
    RETURNING seq, attempts, crashes, delivery, order_key IS NOT NULL`,
  retryJob: `
    UPDATE OR FAIL jobs SET due_at = ?, error = ?, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  releaseJob: `
    UPDATE OR FAIL jobs SET due_at = ? - ${HEAD_START}, attempts = attempts - 1, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  recordCrash: `
    UPDATE OR FAIL jobs SET due_at = ? - ${HEAD_START}, attempts = attempts - 1, crashes = crashes + 1, owner = NULL
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
  // A success is recorded in the row of the job, a crash by its own statement.
  const isOwnRow = trace !== undefined && kind !== 'done' && kind !== 'crashed';
  const finished = (error: string | null, duration: number | null, answer: Answer | null): Step => ({
    statement: 'finishJob',
    values: [kind, error, now, duration, answer?.status ?? null, answer?.body ?? null, ...fence],
  });
  const settled = (): Step => {
    switch (outcome.kind) {
      case 'done':
        return finished(null, trace?.duration ?? null, trace?.answer ?? null);
      case 'dead':
        return finished(outcome.error, null, null);
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
