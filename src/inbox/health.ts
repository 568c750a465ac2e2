import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import type { HealthIndicator, HealthResult } from '../telemetry/health.ts';
import { sharedReading } from '../telemetry/meters.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Backlog, Inbox } from './inbox.ts';

interface BacklogCheckOptions {
  /** The check is DOWN while an open delivery is older than this, in milliseconds. */
  readonly thresholdMs: number;
  /** Dead jobs are reported in words if there are more than this. Default: 0. */
  readonly deadThreshold?: number;
  /** Whether the check is then DOWN. Default: false, because a restart would not help. */
  readonly downWhenDead?: boolean;
  /** Clock in milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Counting a long backlog is slow, so a result is reused for this long, in milliseconds. */
const TTL = 5_000;

/** A larger difference between the clocks is reported in words, in milliseconds. */
const MAX_SKEW = 1_000;
/** The shown difference is rounded to this many milliseconds. */
const SKEW_STEP = 100;

/**
 * Checks that deliveries are handled in time. Retries count as waiting; jobs whose planned time has not come
 * do not. Shows the difference between the clocks.
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

/** How far the clock of this process is ahead of the database's; empty if unknown. */
function clockDetails(ahead: number) {
  if (Number.isNaN(ahead)) return {};
  // Rounded, so that the result changes only if the clocks do. Adding 0 avoids a negative zero.
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

/** Counting a long backlog is slow, so a reading is reused for this long, in milliseconds. */
const MAX_AGE = 5_000;

/**
 * Adds the gauges of the backlog and of the difference between the clocks of this process and of the store.
 * With an asynchronous engine they show its last answer, and NaN before the first one and after a failure.
 * `now` is a clock in milliseconds since the epoch.
 */
export function addInboxMetrics(
  metrics: Metrics,
  inbox: Pick<Inbox, 'backlog' | 'clock'>,
  now: () => number = Date.now,
): void {
  let last: Backlog | undefined;
  const refresh = sharedReading(() => {
    const read = whenReady(inbox.backlog(), (backlog) => {
      last = backlog;
    });
    read?.catch(() => {
      last = undefined;
    });
  }, MAX_AGE);

  const gauge = (name: string, unit: string | undefined, description: string, of: (b: Backlog) => number) =>
    metrics.gauge(name, { unit, description }, () => {
      refresh();
      return last === undefined ? Number.NaN : of(last);
    });
  gauge('webhook.backlog', undefined, 'Open jobs, including leased ones', ({ open }) => open);
  gauge('webhook.backlog.age', 'seconds', 'Age of the oldest delivery with an open job', ({ oldestAt }) =>
    oldestAt === undefined ? 0 : Math.max(0, now() - oldestAt) / 1_000,
  );
  gauge('webhook.dead', undefined, 'Dead jobs, which are not retried', ({ dead }) => dead);

  const skew = ClockSkew.of(inbox);
  let ahead = Number.NaN;
  const description = 'How far the clock of this process is ahead of that of the database';
  metrics.gauge('webhook.clock.skew', { unit: 'seconds', description }, () => {
    void whenReady(skew.read(), (measured) => {
      ahead = measured;
    });
    return ahead / 1_000;
  });
}

/** One per inbox, shared by the meter and the health check. */
const skews = new WeakMap<object, ClockSkew>();

/** The difference between the store's clock and this process's; concurrent readers share a measurement. */
class ClockSkew {
  readonly #inbox: Pick<Inbox, 'clock'>;
  #measured: { readonly at: number; readonly ahead: MaybePromise<number> } | undefined;

  constructor(inbox: Pick<Inbox, 'clock'>) {
    this.#inbox = inbox;
  }

  static of(inbox: Pick<Inbox, 'clock'>): ClockSkew {
    const skew = skews.get(inbox) ?? new ClockSkew(inbox);
    skews.set(inbox, skew);
    return skew;
  }

  /** How far the clock of this process is ahead, in milliseconds; NaN if the store does not answer. */
  read(): MaybePromise<number> {
    const now = performance.now();
    if (this.#measured === undefined || now - this.#measured.at > MAX_AGE) {
      this.#measured = { at: now, ahead: this.#measure() };
    }
    return this.#measured.ahead;
  }

  #measure(): MaybePromise<number> {
    const before = Date.now();
    // The store read its clock between the two readings; assume halfway.
    const ahead = whenReady(this.#inbox.clock(), (time) => (before + Date.now()) / 2 - time);
    return ahead instanceof Promise ? ahead.catch(() => Number.NaN) : ahead;
  }
}
