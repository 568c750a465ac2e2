import type { ClaimedJob } from '../../inbox/delivery.ts';
import type { Outcome } from '../../inbox/inbox.ts';
import type { Step } from '../sqlite-writer/batch.ts';

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

/** Maximum number of successes kept for a job that is replayed again and again. */
const MAX_REPLAYED = 1_000;

/** Follows the outcome of an attempt in the same write; adds nothing if the lease was lost. */
export const RECORD_ATTEMPT = `
  INSERT INTO attempts (job, attempt, outcome, started_at, duration, process, status, answer, error)
  SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE changes() > 0`;

/** Keeps only the last `?2` entries of the job `?1`. */
export const TRIM_ATTEMPTS = `
  DELETE FROM attempts
  WHERE job = ?1 AND seq <= (SELECT seq FROM attempts WHERE job = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`;

/**
 * Before a replay: records the successes of the delivery `?1` as entries, for jobs whose targets are in `?2`.
 */
export const KEEP_SUCCESSES = `
  INSERT INTO attempts (job, attempt, outcome, started_at, duration, process)
  SELECT seq, attempts, 'done', finished_at - duration, duration, ended_by FROM jobs
  WHERE delivery = ?1 AND duration IS NOT NULL AND target IN (SELECT value ->> 0 FROM json_each(?2))
    AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.delivery = jobs.delivery AND other.status = 'open')
    AND (SELECT count(*) FROM attempts WHERE job = jobs.seq) < ${MAX_REPLAYED}`;

/** Removes the entries of the delivery `?`. */
export const REMOVE_ATTEMPTS = `
  DELETE FROM attempts WHERE job IN (SELECT seq FROM jobs WHERE delivery = ?)`;
