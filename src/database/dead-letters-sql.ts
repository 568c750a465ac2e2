import { ALERT_MARK, ALERT_PREFIX, MAX_COUNTED } from '../inbox/alerts/dead-letters.ts';

/**
 * By target, the jobs that have died after the mark of its alerts and up to `$1`, where the mark is at least `$2` older;
 * one index lookup per target (a loose index scan), and the entries that are counted.
 */
export const DEAD_LETTERS = `
  WITH RECURSIVE dying (target) AS (
    SELECT min(target) FROM jobs WHERE status = 'dead'
    UNION ALL
    SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'dead' AND jobs.target > dying.target)
    FROM dying WHERE dying.target IS NOT NULL),
  marked AS (
    SELECT dying.target, coalesce(marks.at, 0) AS since
    FROM dying LEFT JOIN marks ON marks.name = '${ALERT_MARK}' || dying.target
    WHERE dying.target IS NOT NULL AND substr(dying.target, 1, ${ALERT_PREFIX.length}) <> '${ALERT_PREFIX}'),
  counted AS (
    SELECT target, since, (
      SELECT count(*) FROM (
        SELECT 1 FROM jobs
        WHERE status = 'dead' AND jobs.target = marked.target AND finished_at > since
          AND finished_at <= CAST($1 AS bigint) LIMIT ${MAX_COUNTED}) AS dead) AS count
    FROM marked WHERE since <= CAST($1 AS bigint) - CAST($2 AS bigint))
  SELECT target, count, since FROM counted WHERE count > 0`;
