import type { DeliveryStatus } from '../inbox/delivery-log.ts';
import type { Backlog } from '../inbox/inbox.ts';
import { PRIORITY_LEVEL } from '../inbox/priority.ts';

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

/** The time that a job waits for, until its first attempt. */
export const PLANNED_AT = `CASE WHEN status = 'open' AND owner IS NULL AND attempts = 0 THEN run_at END`;

/**
 * The targets of open jobs, one index lookup per target (a loose index scan): jobs are many, targets few. Where a job waits
 * for its order, another one does not.
 */
export const WAITING_TARGETS = `
  WITH RECURSIVE waiting (target) AS (
    SELECT min(target) FROM jobs WHERE status = 'open' AND NOT waits
    UNION ALL
    SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'open' AND NOT waits AND jobs.target > waiting.target)
    FROM waiting WHERE waiting.target IS NOT NULL)`;

/** How much earlier a job that is due at once counts as due, by its priority, in milliseconds. */
export const HEAD_START = `jobs.priority * ${PRIORITY_LEVEL}`;

/** What the rows of a delivery hold in bodies and headers, in bytes. */
export const DELIVERY_BYTES = 'octet_length(body) + coalesce(octet_length(headers), 0)';

/** Estimated size of the rows and index entries of a delivery, without its body and its headers, in bytes. */
export const DELIVERY_OVERHEAD = 500;

/** A column of all open jobs: of those that wait for their order, and of the others, each by an index. */
export const openJobs = (column: string) => `
  SELECT ${column} FROM jobs WHERE status = 'open' AND NOT waits UNION ALL
  SELECT ${column} FROM jobs WHERE status = 'open' AND order_key IS NOT NULL AND waits`;

/**
 * The counts of open and dead jobs, and of those that wait for their time. When the oldest delivery was received that has
 * an open job without a time, and the oldest time that has come; what is behind a job that waits for its time in the
 * order of their key is left out. `now` is an expression.
 */
export const backlogAt = (now: string) => `
  ${WAITING_TARGETS},
  held_keys AS (
    SELECT jobs.target, jobs.order_key FROM waiting JOIN jobs ON jobs.target = waiting.target
    WHERE status = 'open' AND NOT waits AND due_at > ${now} AND run_at > ${now} AND order_key IS NOT NULL),
  open_jobs AS (
    SELECT delivery, run_at,
      order_key IS NULL OR (target, order_key) NOT IN (SELECT target, order_key FROM held_keys) AS counts
    FROM (${openJobs('delivery, target, order_key, run_at')}) AS each)
  SELECT open, (SELECT count(*) FROM jobs WHERE status = 'dead') AS dead, planned,
    (SELECT received_at FROM deliveries WHERE seq = oldest) AS "receivedAt", "runAt"
  FROM (
    SELECT count(*) AS open, count(*) FILTER (WHERE run_at > ${now}) AS planned,
      min(delivery) FILTER (WHERE run_at IS NULL AND counts) AS oldest,
      min(run_at) FILTER (WHERE run_at <= ${now} AND counts) AS "runAt"
    FROM open_jobs) AS total`;

/** A row of `backlogAt`. */
export interface BacklogRow {
  readonly open: number;
  readonly dead: number;
  readonly planned: number;
  readonly receivedAt: number | null;
  readonly runAt: number | null;
}

export function readBacklog({ open, dead, planned, receivedAt, runAt }: BacklogRow): Backlog {
  const times = [receivedAt, runAt].filter((time) => time !== null);
  const oldestAt = times.length === 0 ? undefined : Math.min(...times);
  return { open, dead, oldestAt, ...(planned > 0 && { planned }) };
}
