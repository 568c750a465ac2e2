/** The targets that have open jobs, found by as many looks into the index of these: there can be many jobs, but few targets. */
export const WAITING_TARGETS = `
  WITH RECURSIVE waiting (target) AS (
    SELECT min(target) FROM jobs WHERE status = 'open'
    UNION ALL
    SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'open' AND jobs.target > waiting.target)
    FROM waiting WHERE waiting.target IS NOT NULL)`;
