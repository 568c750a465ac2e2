import type { AttemptEntry } from '../inbox/attempts.ts';

/** A row, column by column. */
type Row = readonly unknown[];

/** The entries of the jobs of the delivery `$1`. */
export const ATTEMPTS = `
  SELECT job, attempt, outcome, started_at, duration, process, status, answer, error FROM attempts
  WHERE job IN (SELECT seq FROM jobs WHERE delivery = $1) ORDER BY seq`;

/** The columns of a job that say how it was handled, when that has no row of its own. */
export const SUCCESS = 'attempts, finished_at, duration, ended_by';

/** The entries by the number of their job; `decode` is the inverse of how the engine stores a text. */
export function entriesByJob(
  rows: readonly Row[],
  decode: (text: string | null) => string | null,
): ReadonlyMap<number, readonly AttemptEntry[]> {
  type Columns = [number, number, AttemptEntry['outcome'], number, number | null, string, number | null];
  const entries = rows.map((row): [number, AttemptEntry] => {
    const [job, attempt, outcome, startedAt, duration, process, status] = row as Columns & Row;
    const [answer = null, error = null] = row.slice(7) as (string | null)[];
    const body = decode(answer) ?? '';
    return [
      job,
      {
        attempt,
        outcome,
        startedAt,
        duration,
        process,
        answer: status === null ? null : { status, body },
        error: decode(error),
      },
    ];
  });
  const byJob = Map.groupBy(entries, ([job]) => job);
  return new Map([...byJob].map(([job, all]) => [job, all.map(([, entry]) => entry)]));
}

/** The entry of the success in the columns `SUCCESS`; none where they hold none. */
export function successEntry(row: Row): readonly AttemptEntry[] {
  const [attempt, finishedAt, duration, process] = row as [
    number,
    number | null,
    number | null,
    string | null,
  ];
  if (finishedAt === null || duration === null || process === null) return [];
  const startedAt = finishedAt - duration;
  return [{ attempt, outcome: 'done', startedAt, duration, process, answer: null, error: null }];
}
