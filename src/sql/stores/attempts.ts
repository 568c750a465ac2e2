import type { AttemptEntry } from '../../inbox/inbox.ts';
import type { Row } from './sql.ts';

/** Maximum number of attempts kept for a job that is opened again and again. */
const MAX_KEPT = 1_000;

const columns = 'attempt, outcome, started_at, duration, process, status, answer, error';
/** The success that a row of `jobs` records, as these columns. */
const success = `
  jobs.attempts, 'done', jobs.finished_at - jobs.duration, jobs.duration, jobs.ended_by, jobs.answer_status,
  jobs.answer, NULL`;
const isSuccess = 'jobs.duration IS NOT NULL';

/** Parts of statements about attempts: the success of a job is in its row, all others are in `attempts`. */
export const ATTEMPTS = {
  /** What `read` reads. */
  columns,
  success,
  isSuccess,
  /** The attempts of the jobs that a condition selects, with the job first; `limit` bounds all but successes. */
  of: (jobs: string, limit: number) => `
    SELECT job, ${columns} FROM (
      SELECT * FROM (
        SELECT seq AS nth, job, ${columns} FROM attempts
        WHERE job IN (SELECT seq FROM jobs WHERE ${jobs}) ORDER BY seq LIMIT ${limit}) AS ended
      UNION ALL
      SELECT ${Number.MAX_SAFE_INTEGER}, seq, ${success} FROM jobs WHERE ${jobs} AND ${isSuccess}) AS every
    ORDER BY nth`,
  /** Moves the successes of the jobs that a condition selects to `attempts`, before the jobs are opened again. */
  keep: (jobs: string) => `
    INSERT INTO attempts (job, ${columns})
    SELECT seq, ${success} FROM jobs
    WHERE ${jobs} AND ${isSuccess} AND (SELECT count(*) FROM attempts WHERE job = jobs.seq) < ${MAX_KEPT}`,
  /** Assignments that remove the success from a row of `jobs`. */
  noSuccess: 'duration = NULL, ended_by = NULL, answer_status = NULL, answer = NULL',
  /** Reads the columns of an attempt. */
  read(row: Row): AttemptEntry {
    type Columns = [number, AttemptEntry['outcome'], number, number | null, string, number | null];
    const [attempt, outcome, startedAt, duration, process, status] = row as Columns & Row;
    const [body, error = null] = row.slice(6) as (string | null)[];
    const answer = status === null ? null : { status, body: body ?? '' };
    return { attempt, outcome, startedAt, duration, process, answer, error };
  },
} as const;
