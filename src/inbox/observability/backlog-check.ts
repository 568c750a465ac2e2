import { whenReady } from '../../core/maybe-promise.ts';
import type { HealthIndicator, HealthResult } from '../../observability/health/health.ts';
import type { Backlog, Inbox } from '../inbox.ts';
import { ClockSkew } from './clock-skew.ts';

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

/** A larger difference between the clocks is put into words, in milliseconds. */
const MAX_SKEW = 1_000;
/** A difference is shown in steps of so many milliseconds. */
const SKEW_STEP = 100;

/**
 * Checks that deliveries are handled in time; those that wait for a retry count too, and not those that wait for a time of
 * their own. Shows how far the clocks differ.
 */
export function backlogCheck(
  inbox: Pick<Inbox, 'backlog' | 'clock'>,
  { thresholdMs, deadThreshold = 0, downWhenDead = false, now = Date.now }: BacklogCheckOptions,
): HealthIndicator {
  function result({ open, planned, oldestAt, dead }: Backlog, ahead: number): HealthResult {
    const tooMany = dead > deadThreshold;
    const words = tooMany ? { deadLetters: inWords(dead, deadThreshold) } : {};
    const whole = tooMany && downWhenDead ? 'DOWN' : 'UP';
    const more = { ...(planned !== undefined && { planned }), ...words, ...clockDetails(ahead) };
    if (oldestAt === undefined) return { status: whole, details: { open, dead, thresholdMs, ...more } };
    // The clock may have been set back.
    const oldestMs = Math.max(0, now() - oldestAt);
    const status = oldestMs > thresholdMs ? 'DOWN' : whole;
    return { status, details: { open, oldestMs, dead, thresholdMs, ...more } };
  }

  const skew = ClockSkew.of(inbox);
  const check = () => {
    const ahead = skew.read();
    return whenReady(inbox.backlog(), (backlog) => whenReady(ahead, (ms) => result(backlog, ms)));
  };
  return { name: 'webhookBacklog', ttlMs: TTL, check };
}

/** How far the clock of this process is ahead of that of the database; nothing when that is not known. */
function clockDetails(ahead: number) {
  if (Number.isNaN(ahead)) return {};
  // Coarse, so that the result changes only when the clocks do; without a negative zero.
  const clockSkewMs = Math.round(ahead / SKEW_STEP) * SKEW_STEP + 0;
  if (Math.abs(ahead) <= MAX_SKEW) return { clockSkewMs };
  const seconds = Math.round(Math.abs(ahead) / 1_000);
  const clock = `the clock of this process is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} that of the database`;
  return { clockSkewMs, clock };
}

function inWords(dead: number, threshold: number): string {
  const jobs = dead === 1 ? '1 job is dead' : `${dead} jobs are dead`;
  const limit = threshold === 0 ? '' : ` (more than ${threshold})`;
  return `${jobs}${limit} and will not be retried: replay or discard the deliveries`;
}
