import { createHash } from 'node:crypto';
import { PRIORITY_LEVEL } from '../inbox/delivery.ts';
import type { AttemptEntry } from '../inbox/inbox.ts';
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
