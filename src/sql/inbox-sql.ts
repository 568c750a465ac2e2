import { createHash } from 'node:crypto';
import { PRIORITY_LEVEL } from '../inbox/delivery.ts';

// Inbox SQL shared by both engines.

/** The condition that a target is the endpoint of a customer, as partial indexes have it. */
export const isEndpoint = (target: string) => `${target} >= 'endpoint:' AND ${target} < 'endpoint;'`;

/** The two ranges of targets beside endpoints, each a range of an index that begins with the target. */
export const BESIDE_ENDPOINTS = [`target < 'endpoint:'`, `target >= 'endpoint;'`] as const;

/** The condition that a source is a tenant, as partial indexes have it. */
export const IS_TENANT = `source >= 'tenant:' AND source < 'tenant;'`;

/** Where the next target of a loose index scan is looked for: behind all endpoints, which count as one. */
export const beyond = (target: string) =>
  `CASE WHEN ${isEndpoint(target)} THEN 'endpoint;' ELSE ${target} END`;

/**
 * The targets of open jobs, by one index lookup per target (a loose index scan), because jobs are many and
 * targets few; of the endpoints of customers, which may be many, only the first. Blocked jobs can be left out:
 * each waits behind an unblocked job of the same target.
 */
export const WAITING_TARGETS = `
  WITH RECURSIVE waiting (target) AS (
    SELECT min(target) FROM jobs WHERE status = 'open' AND NOT blocked
    UNION ALL
    SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'open' AND NOT blocked AND jobs.target > ${beyond('waiting.target')})
    FROM waiting WHERE waiting.target IS NOT NULL)`;

/** How much earlier a job counts as due because of its priority, in milliseconds. */
export const HEAD_START = `jobs.priority * ${PRIORITY_LEVEL}`;

/** The size of a delivery's body and headers, in bytes. */
export const DELIVERY_BYTES = 'octet_length(body) + coalesce(octet_length(headers), 0)';

/** Estimated size of a delivery's rows and index entries without body and headers, in bytes. */
export const DELIVERY_OVERHEAD = 500;

/** A column of all open jobs, blocked and unblocked, each by its own index. */
export const openJobs = (column: string, condition = '') => `
  SELECT ${column} FROM jobs WHERE status = 'open' AND NOT blocked ${condition} UNION ALL
  SELECT ${column} FROM jobs WHERE status = 'open' AND order_key IS NOT NULL AND blocked ${condition}`;

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

/** The condition that a new job has to wait behind an unblocked job with its order key; on SQLite only. */
export const isBlocked = (target: string, orderKey: string) => `${orderKey} IS NOT NULL AND EXISTS (
      SELECT 1 FROM jobs AS head
      WHERE head.target = ${target} AND head.order_key = ${orderKey} AND head.status = 'open' AND NOT head.blocked)`;
