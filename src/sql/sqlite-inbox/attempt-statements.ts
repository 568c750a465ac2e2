/** More successes than this are not kept when a job is replayed again and again. */
const MAX_REPLAYED = 1_000;

/** Follows the outcome of an attempt in the same write; adds nothing when that has lost its lease. */
export const RECORD_ATTEMPT = `
  INSERT INTO attempts (job, attempt, outcome, started_at, duration, process, status, answer, error)
  SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE changes() > 0`;

/** Leaves the job `?1` its last `?2` entries. */
export const TRIM_ATTEMPTS = `
  DELETE FROM attempts
  WHERE job = ?1 AND seq <= (SELECT seq FROM attempts WHERE job = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`;

/** Before a replay: makes entries of the successes of the delivery `?1` whose jobs are among the targets `?2`. */
export const KEEP_SUCCESSES = `
  INSERT INTO attempts (job, attempt, outcome, started_at, duration, process)
  SELECT seq, attempts, 'done', finished_at - duration, duration, ended_by FROM jobs
  WHERE delivery = ?1 AND duration IS NOT NULL AND target IN (SELECT value ->> 0 FROM json_each(?2))
    AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.delivery = jobs.delivery AND other.status = 'open')
    AND (SELECT count(*) FROM attempts WHERE job = jobs.seq) < ${MAX_REPLAYED}`;

/** Removes the entries of the delivery `?`. */
export const REMOVE_ATTEMPTS = `
  DELETE FROM attempts WHERE job IN (SELECT seq FROM jobs WHERE delivery = ?)`;
