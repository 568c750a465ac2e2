/** More successes than this are not kept when a job is replayed again and again. */
const MAX_REPLAYED = 1_000;

/** Before a replay: makes entries of the successes of the delivery with the id $1 whose jobs are among the targets $2. */
export const KEEP_SUCCESSES = `
  INSERT INTO attempts (job, attempt, outcome, started_at, duration, process)
  SELECT seq, attempts, 'done', finished_at - duration, duration, ended_by FROM jobs
  WHERE delivery = (SELECT seq FROM deliveries WHERE id = $1) AND duration IS NOT NULL AND target = ANY ($2::text[])
    AND (SELECT count(*) FILTER (WHERE status = 'open') FROM jobs AS other WHERE other.delivery = jobs.delivery) = 0
    AND (SELECT count(*) FROM attempts WHERE job = jobs.seq) < ${MAX_REPLAYED}`;

/** Removes the entries of the deliveries that are in `old`. */
export const REMOVE_ATTEMPTS = `
  DELETE FROM attempts WHERE job = ANY (ARRAY(
    SELECT seq FROM jobs WHERE delivery = ANY (ARRAY(SELECT seq FROM old))))`;
