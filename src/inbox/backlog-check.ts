import { whenReady } from '../core/maybe-promise.ts';
import type { HealthIndicator, HealthResult } from '../observability/health/health.ts';
import type { Backlog, Inbox } from './inbox.ts';

export interface BacklogCheckOptions {
  /** The check is DOWN while an open delivery is older than this, in milliseconds. */
  readonly thresholdMs: number;
  /** Clock in milliseconds since the epoch; default `Date.now`. */
  readonly now?: () => number;
}

/** Counting a long backlog is slow, so a result is reused for this long, in milliseconds. */
const TTL = 5_000;

/** Checks that deliveries are handled in time; those that wait for a retry count too. */
export function backlogCheck(
  inbox: Pick<Inbox, 'backlog'>,
  { thresholdMs, now = Date.now }: BacklogCheckOptions,
): HealthIndicator {
  function result({ open, oldestAt, dead }: Backlog): HealthResult {
    if (oldestAt === undefined) return { status: 'UP', details: { open, dead, thresholdMs } };
    // The clock may have been set back.
    const oldestMs = Math.max(0, now() - oldestAt);
    const status = oldestMs > thresholdMs ? 'DOWN' : 'UP';
    return { status, details: { open, oldestMs, dead, thresholdMs } };
  }

  return { name: 'webhookBacklog', ttlMs: TTL, check: () => whenReady(inbox.backlog(), result) };
}
