import { whenReady } from '../core/maybe-promise.ts';
import type { HealthIndicator, HealthResult } from '../observability/health/health.ts';
import type { Backlog, Inbox } from './inbox.ts';

export interface BacklogCheckOptions {
  /** The check is DOWN while an open delivery is older than this, in milliseconds. */
  readonly thresholdMs: number;
  /** With more dead jobs than this the details say so in words; default 0. */
  readonly deadThreshold?: number;
  /** Whether the check is DOWN then; default false: a restart would not help. */
  readonly downWhenDead?: boolean;
  /** Clock in milliseconds since the epoch; default `Date.now`. */
  readonly now?: () => number;
}

/** Counting a long backlog is slow, so a result is reused for this long, in milliseconds. */
const TTL = 5_000;

/** Checks that deliveries are handled in time; those that wait for a retry count too. */
export function backlogCheck(
  inbox: Pick<Inbox, 'backlog'>,
  { thresholdMs, deadThreshold = 0, downWhenDead = false, now = Date.now }: BacklogCheckOptions,
): HealthIndicator {
  function result({ open, oldestAt, dead }: Backlog): HealthResult {
    const tooMany = dead > deadThreshold;
    const words = tooMany ? { deadLetters: inWords(dead, deadThreshold) } : {};
    const whole = tooMany && downWhenDead ? 'DOWN' : 'UP';
    if (oldestAt === undefined) return { status: whole, details: { open, dead, thresholdMs, ...words } };
    // The clock may have been set back.
    const oldestMs = Math.max(0, now() - oldestAt);
    const status = oldestMs > thresholdMs ? 'DOWN' : whole;
    return { status, details: { open, oldestMs, dead, thresholdMs, ...words } };
  }

  return { name: 'webhookBacklog', ttlMs: TTL, check: () => whenReady(inbox.backlog(), result) };
}

function inWords(dead: number, threshold: number): string {
  const jobs = dead === 1 ? '1 job is dead' : `${dead} jobs are dead`;
  const limit = threshold === 0 ? '' : ` (more than ${threshold})`;
  return `${jobs}${limit} and will not be retried: replay or discard the deliveries`;
}
