import { storable } from '../text.ts';
import { timeOr } from './server-clock.ts';
import type { Settlement } from './settle.ts';

/**
 * The parts of a statement that add entries to the histories of jobs: of those settlements whose number is in `settled` as
 * `nth`. The values of the entries begin with the parameter `first`. The rows that a statement adds are not visible to it,
 * hence one fewer of the old ones stays.
 */
export function recorded(first: number): string {
  const types = ['bigint', 'bigint', 'int', 'text', 'bigint', 'bigint', 'text', 'int', 'text', 'text', 'int'];
  const arrays = types.map((type, i) => `$${first + i}::${type}[]`).join(', ');
  return `
    entries AS MATERIALIZED (
      SELECT given.* FROM unnest(${arrays})
        AS given (nth, job, attempt, outcome, now, duration, process, status, answer, error, kept)
      JOIN settled USING (nth)),
    recorded AS (
      INSERT INTO attempts (job, attempt, outcome, started_at, duration, process, status, answer, error)
      SELECT job, attempt, outcome, ${timeOr('now')} - duration, duration, process, status, answer, error
      FROM entries WHERE kept > 0 ORDER BY nth),
    trimmed AS (
      DELETE FROM attempts WHERE seq = ANY (ARRAY(
        SELECT old.seq FROM entries, LATERAL (
          SELECT seq FROM attempts WHERE attempts.job = entries.job ORDER BY job DESC, seq DESC
          OFFSET greatest(kept - 1, 0)) AS old)))`;
}

/** A success without an answer is in the columns of its job, and a death recorded by a trigger. */
function isEntry({ outcome: { kind, trace } }: Settlement): boolean {
  return trace !== undefined && (kind !== 'done' || trace.answer !== null) && kind !== 'died';
}

/** The duration that goes to the column of the job. */
export function successDuration(settlement: Settlement): number | null {
  const { kind, trace } = settlement.outcome;
  return kind === 'done' && trace !== undefined && !isEntry(settlement) ? trace.duration : null;
}

/** The values of the entries of settlements; undefined when none has one. */
export function entriesOf(settlements: readonly Settlement[]): readonly unknown[] | undefined {
  const entries = settlements.flatMap((settlement, i) => {
    const { job, now, owner, outcome } = settlement;
    const { kind, trace } = outcome;
    if (trace === undefined || !isEntry(settlement)) return [];
    const { answer, duration, kept } = trace;
    const body = storable(answer?.body ?? null);
    const error = 'error' in outcome ? storable(outcome.error) : null;
    return [
      [
        i + 1,
        job.job,
        job.attempt,
        kind,
        now,
        duration,
        owner,
        answer?.status ?? null,
        body,
        error,
        kept,
      ] as const,
    ];
  });
  const [first] = entries;
  return first?.map((_, column) => entries.map((entry) => entry[column]));
}
