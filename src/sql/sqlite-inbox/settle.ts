import type { ClaimedJob } from '../../inbox/delivery.ts';
import type { Outcome } from '../../inbox/inbox.ts';
import type { Step } from '../sqlite-writer/batch.ts';

/** The step that records a success without an answer, which has no row of its own. */
export function doneStep(
  { job, attempt, deaths }: ClaimedJob,
  owner: string,
  duration: number | null,
  now: number,
): Step {
  return { statement: 'finishJob', values: ['done', null, now, duration, job, owner, attempt, deaths] };
}

/**
 * The write that records how an attempt of `owner` ended at `now`; its first step tells whether the lease still held.
 * `next` is a step for which `changes()` tells the same.
 */
export function settleSteps(
  claimed: ClaimedJob,
  owner: string,
  outcome: Outcome,
  now: number,
  next?: Step,
): readonly Step[] {
  const { job, attempt, deaths } = claimed;
  const fence = [job, owner, attempt, deaths];
  const { kind, trace } = outcome;
  // A success without an answer is in the columns of the job, and a death recorded by its own statement.
  const isOwnRow = trace !== undefined && (kind !== 'done' || trace.answer !== null) && kind !== 'died';
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
      case 'died':
        return { statement: 'recordDeath', values: [now, ...fence] };
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
