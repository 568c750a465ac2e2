import type { HealthIndicator, HealthResult } from '../observability/health/health.ts';
import type { Backlog, Inbox } from './inbox.ts';

export interface BacklogCheckOptions {
  /** A delivery that waits longer than this is DOWN, in milliseconds. */
  readonly thresholdMs: number;
  /** Milliseconds since the epoch, as deliveries have them. */
  readonly now?: () => number;
}

/** A long backlog takes long to count; it is looked at no more often than this, in milliseconds. */
const TTL = 5_000;

/** Whether deliveries are handled in time: those that failed and are tried again wait too. */
export function backlogCheck(
  inbox: Pick<Inbox, 'backlog'>,
  { thresholdMs, now = Date.now }: BacklogCheckOptions,
): HealthIndicator {
  function result({ open, oldestAt, dead }: Backlog): HealthResult {
    if (oldestAt === undefined) return { status: 'UP', details: { open, dead, thresholdMs } };
    // A clock that was put back makes nothing younger than new.
    const oldestMs = Math.max(0, now() - oldestAt);
    const status = oldestMs > thresholdMs ? 'DOWN' : 'UP';
    return { status, details: { open, oldestMs, dead, thresholdMs } };
  }

  return {
    name: 'webhookBacklog',
    ttlMs: TTL,
    check() {
      const backlog = inbox.backlog();
      return backlog instanceof Promise ? backlog.then(result) : result(backlog);
    },
  };
}
