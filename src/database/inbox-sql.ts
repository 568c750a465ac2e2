import type { DeliveryStatus } from '../inbox/delivery-log.ts';

// SQL of the inbox that both engines share.

/** The conditions on jobs that decide the status of a delivery, the first match first. */
const STATUS_OF: readonly (readonly [DeliveryStatus, string])[] = [
  ['processing', `status = 'open' AND owner IS NOT NULL`],
  ['pending', `status = 'open'`],
  ['dead', `status = 'dead'`],
  ['done', `status = 'done'`],
  ['discarded', `status = 'discarded'`],
];
const CASES = STATUS_OF.map(
  ([status, condition]) => `WHEN count(*) FILTER (WHERE ${condition}) > 0 THEN '${status}'`,
);

/**
 * An expression for the status of the delivery in row `d`. It reads only the jobs of that delivery, whichever index the
 * planner would prefer for each condition alone.
 */
export const STATUS = `(SELECT CASE ${CASES.join(' ')} ELSE 'unhandled' END FROM jobs WHERE delivery = d.seq)`;

/** The status of a job as operators see it: an open one is pending, or processing while it is leased. */
export const JOB_STATUS = `CASE WHEN status <> 'open' THEN status WHEN owner IS NULL THEN 'pending' ELSE 'processing' END`;

/** The targets of open jobs, one index lookup per target (a loose index scan): jobs are many, targets few. */
export const WAITING_TARGETS = `
  WITH RECURSIVE waiting (target) AS (
    SELECT min(target) FROM jobs WHERE status = 'open'
    UNION ALL
    SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'open' AND jobs.target > waiting.target)
    FROM waiting WHERE waiting.target IS NOT NULL)`;

/** Estimated size of the rows and index entries of a delivery, without its body, in bytes. */
export const DELIVERY_OVERHEAD = 500;
