import { createHash } from 'node:crypto';
import { PRIORITY_LEVEL } from '../inbox/delivery.ts';
import type { Backlog } from '../inbox/inbox.ts';
import { ALERT_CHECKPOINT, ALERT_PREFIX, type AttemptEntry, MAX_COUNTED } from '../inbox/inbox.ts';
import type { DeliveryStatus } from '../inbox/operations.ts';

// Inbox SQL shared by both engines.

/** Conditions on jobs that determine the status of a delivery; the first match counts. */
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
 * An expression for the status of the delivery in row `d`. It is one subquery, so it reads only that
 * delivery's jobs, whatever index the planner would choose for a single condition.
 */
export const STATUS = `(SELECT CASE ${CASES.join(' ')} ELSE 'unhandled' END FROM jobs WHERE delivery = d.seq)`;

/** The status of a job for operators: an open job is pending, or processing while it is leased. */
export const JOB_STATUS = `CASE WHEN status <> 'open' THEN status WHEN owner IS NULL THEN 'pending' ELSE 'processing' END`;

/** The planned time of a job before its first attempt; null otherwise. */
export const PLANNED_AT = `CASE WHEN status = 'open' AND owner IS NULL AND attempts = 0 THEN run_at END`;

/**
 * The targets of open jobs, by one index lookup per target (a loose index scan), because jobs are many and
 * targets few. Blocked jobs can be left out: each waits behind an unblocked job of the same target.
 */
export const WAITING_TARGETS = `
  WITH RECURSIVE waiting (target) AS (
    SELECT min(target) FROM jobs WHERE status = 'open' AND NOT blocked
    UNION ALL
    SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'open' AND NOT blocked AND jobs.target > waiting.target)
    FROM waiting WHERE waiting.target IS NOT NULL)`;

/** How much earlier a job counts as due because of its priority, in milliseconds. */
export const HEAD_START = `jobs.priority * ${PRIORITY_LEVEL}`;

/** The size of a delivery's body and headers, in bytes. */
export const DELIVERY_BYTES = 'octet_length(body) + coalesce(octet_length(headers), 0)';

/** Estimated size of a delivery's rows and index entries without body and headers, in bytes. */
export const DELIVERY_OVERHEAD = 500;

/** A column of all open jobs, blocked and unblocked, each by its own index. */
export const openJobs = (column: string) => `
  SELECT ${column} FROM jobs WHERE status = 'open' AND NOT blocked UNION ALL
  SELECT ${column} FROM jobs WHERE status = 'open' AND order_key IS NOT NULL AND blocked`;

/**
 * Counts open, dead and planned jobs, and finds the oldest waiting ones: the receipt of the oldest delivery
 * with an open job without a planned time, and the oldest planned time that has come. Jobs behind a planned
 * job in the order of their key are left out. `now` is an SQL expression.
 */
export const backlogAt = (now: string) => `
  ${WAITING_TARGETS},
  held_keys AS (
    SELECT jobs.target, jobs.order_key FROM waiting JOIN jobs ON jobs.target = waiting.target
    WHERE status = 'open' AND NOT blocked AND due_at > ${now} AND run_at > ${now} AND order_key IS NOT NULL),
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

/** A row as an array of columns. */
type Row = readonly unknown[];

/** The attempts of the jobs of delivery `$1`. */
export const ATTEMPTS = `
  SELECT job, attempt, outcome, started_at, duration, process, status, answer, error FROM attempts
  WHERE job IN (SELECT seq FROM jobs WHERE delivery = $1) ORDER BY seq`;

/** The columns of a job that record a success, which usually has no row in `attempts`. */
export const SUCCESS = 'attempts, finished_at, duration, ended_by';

/** Groups entries by job number; `decode` reverses the engine's encoding of texts. */
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

/** The history entry of a success recorded in the columns `SUCCESS`; empty if none is recorded. */
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

/**
 * Per target, counts the jobs that died after the checkpoint of its alerts and by `$1`, if the checkpoint is
 * at least `$2` older. Takes one index lookup per target (a loose index scan) plus the entries that are
 * counted.
 */
export const DEAD_LETTERS = `
  WITH RECURSIVE dying (target) AS (
    SELECT min(target) FROM jobs WHERE status = 'dead'
    UNION ALL
    SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'dead' AND jobs.target > dying.target)
    FROM dying WHERE dying.target IS NOT NULL),
  alerted AS (
    SELECT dying.target, coalesce(checkpoints.at, 0) AS since
    FROM dying LEFT JOIN checkpoints ON checkpoints.name = '${ALERT_CHECKPOINT}' || dying.target
    WHERE dying.target IS NOT NULL AND substr(dying.target, 1, ${ALERT_PREFIX.length}) <> '${ALERT_PREFIX}'),
  counted AS (
    SELECT target, since, (
      SELECT count(*) FROM (
        SELECT 1 FROM jobs
        WHERE status = 'dead' AND jobs.target = alerted.target AND finished_at > since
          AND finished_at <= CAST($1 AS bigint) LIMIT ${MAX_COUNTED}) AS dead) AS count
    FROM alerted WHERE since <= CAST($1 AS bigint) - CAST($2 AS bigint))
  SELECT target, count, since FROM counted WHERE count > 0`;

/** Maximum number of enqueued deliveries to take at a time. */
const ROWS = 100;
/** Maximum total size of their bodies in bytes, unless the first one is larger. */
const BYTES = 4 * 1024 * 1024;

/** The oldest enqueued deliveries. */
export const OLDEST_ENQUEUED = `
  SELECT seq, id, source, event, body, received_at AS "receivedAt", dedup_key AS "dedupKey" FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(body) AS bytes_before
    FROM (SELECT * FROM enqueued ORDER BY seq LIMIT ${ROWS}) AS oldest) AS sized
  WHERE bytes_before < ${BYTES} ORDER BY seq`;

/**
 * Longer keys are stored as a digest, because index entries are limited to a few kilobytes; in characters.
 */
const MAX_KEY = 200;
const DIGEST = 'sha256:';

/** Turns a text of any length into an indexable key; different texts get different keys. */
export function storedKey<T extends string | null>(text: T): T;
export function storedKey(text: string | null): string | null {
  if (text === null || (text.length <= MAX_KEY && !text.startsWith(DIGEST))) return text;
  return DIGEST + createHash('sha256').update(text).digest('hex');
}
