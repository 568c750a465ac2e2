import { statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describeError } from '../core/errors.ts';
import { isThenable, type MaybePromise } from '../core/scheduler.ts';
import type { EventLoopWindows } from './runtime.ts';

/** The statuses of Actuator. OUT_OF_SERVICE means healthy, but not accepting requests now. */
export type HealthStatus = 'UP' | 'DOWN' | 'OUT_OF_SERVICE' | 'UNKNOWN';

/** The result of a check. `details` are shown only to users who may see them. */
export interface HealthResult {
  readonly status: HealthStatus;
  readonly details?: Readonly<Record<string, unknown>>;
  /** Parts that clients can request by name; the status is aggregated from theirs. */
  readonly components?: Readonly<Record<string, HealthResult>>;
}

/**
 * The answer of a check: a code, where 0 is healthy and any other number identifies the fault; a result; or
 * parts by name, from whose statuses the whole is aggregated.
 */
export type CheckAnswer =
  | number
  | HealthResult
  | { readonly components: Readonly<Record<string, CheckAnswer>> };

/** A named health check. A check that throws, rejects or exceeds its timeout is DOWN. */
export interface HealthIndicator {
  readonly name: string;
  check(signal: AbortSignal): CheckAnswer | Promise<CheckAnswer>;
  /** Timeout in milliseconds; defaults to the registry's. */
  readonly timeoutMs?: number | undefined;
  /** Time to live of a result, in milliseconds; default 0, which runs the check for each request. */
  readonly ttlMs?: number | undefined;
  /** Results are cached only until this signal is aborted. */
  readonly cacheUntil?: AbortSignal | undefined;
  /** False if the process can work without it: the overall status then ignores it. Default true. */
  readonly critical?: boolean | undefined;
}

/** The results of several checks. `components` are in the order of the checks. */
interface HealthReport {
  readonly status: HealthStatus;
  readonly components: Readonly<Record<string, HealthResult>>;
}

/** A check that never throws and has a timeout. */
type BoundedCheck = () => HealthResult | Promise<HealthResult>;

/** Called with the result and duration (in milliseconds) of each run, at the timeout at the latest. */
export type OnChecked = (name: string, result: HealthResult, durationMs: number) => void;

interface Running {
  readonly since: number;
  readonly outcome: Promise<HealthResult>;
  late: boolean;
}

/**
 * Bounds an indicator: a failure is DOWN; no answer within `timeoutMs` is DOWN and aborts its signal. At most
 * one run is in progress. Concurrent calls share its outcome; after its timeout they get DOWN immediately,
 * with the time for which it has been hanging.
 */
function boundedCheck(
  indicator: HealthIndicator,
  timeoutMs: number,
  onChecked: OnChecked = () => {},
): BoundedCheck {
  const { name } = indicator;
  // Reused while runs are synchronous, because a controller costs more than most checks.
  let controller = new AbortController();
  let running: Running | undefined;

  function ended(since: number, result: HealthResult): HealthResult {
    onChecked(name, result, performance.now() - since);
    return result;
  }

  function start(answer: Promise<unknown>, since: number, abort: AbortController): Promise<HealthResult> {
    const { promise: outcome, resolve } = Promise.withResolvers<HealthResult>();
    const run: Running = { since, outcome, late: false };
    const timer = setTimeout(() => {
      run.late = true;
      const message = `no answer within ${timeoutMs} ms`;
      resolve(ended(since, { status: 'DOWN', details: { error: `TimeoutError: ${message}` } }));
      abort.abort(new DOMException(message, 'TimeoutError'));
    }, timeoutMs);
    const settle = (result: HealthResult) => {
      clearTimeout(timer);
      running = undefined;
      if (!run.late) resolve(ended(since, result));
    };
    answer.then(checkedResult).then(settle, (error: unknown) => settle(failed(error)));
    running = run;
    return outcome;
  }

  return () => {
    if (running !== undefined) return running.late ? hanging(running.since) : running.outcome;
    const since = performance.now();
    try {
      const result: unknown = indicator.check(controller.signal);
      if (!isThenable(result)) return ended(since, checkedResult(result));
      const abort = controller;
      controller = new AbortController();
      return start(Promise.resolve(result), since, abort);
    } catch (error) {
      return ended(since, failed(error));
    }
  };
}

function failed(error: unknown): HealthResult {
  return { status: 'DOWN', details: { error: describeError(error) } };
}

function hanging(since: number): HealthResult {
  const hangingMs = Math.round(performance.now() - since);
  const error = `TimeoutError: the last check has been hanging for ${hangingMs} ms`;
  return { status: 'DOWN', details: { error, hangingMs } };
}

/** A stale result is served for at most this multiple of its time to live, while a newer one is fetched. */
const MAX_STALENESS = 10;

interface CachedCheckOptions extends Pick<HealthIndicator, 'cacheUntil'> {
  /** Time to live of a result, in milliseconds; 0 caches nothing. */
  readonly ttlMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/**
 * Caches the result of a check for `ttlMs`. After that, a call still gets the old result immediately while
 * the check runs in the background; a result older than ten times `ttlMs` is not served.
 * States: empty -> fresh -> stale -> expired; each becomes fresh when a run ends. Calls wait for the run only
 * in `empty` and `expired`.
 */
export function cachedCheck(run: BoundedCheck, { ttlMs, now, cacheUntil }: CachedCheckOptions): BoundedCheck {
  if (ttlMs === 0) return run;
  let last: { readonly result: HealthResult; readonly at: number } | undefined;
  let fetching: Promise<HealthResult> | undefined;

  function keep(result: HealthResult): HealthResult {
    last = { result, at: now() };
    fetching = undefined;
    return result;
  }

  function fetch(): HealthResult | Promise<HealthResult> {
    if (fetching !== undefined) return fetching;
    const next = run();
    if (!(next instanceof Promise)) return keep(next);
    fetching = next.then(keep);
    return fetching;
  }

  return () => {
    if (cacheUntil?.aborted) return run();
    if (last === undefined) return fetch();
    const { result, at } = last;
    const age = now() - at;
    if (age < ttlMs) return result;
    const next = fetch();
    return next instanceof Promise && age < MAX_STALENESS * ttlMs ? result : next;
  };
}

/** One object per status, so that equal results are identical: reply caches compare them by identity. */
const PLAIN: Readonly<Record<HealthStatus, HealthResult>> = {
  UP: { status: 'UP' },
  DOWN: { status: 'DOWN' },
  OUT_OF_SERVICE: { status: 'OUT_OF_SERVICE' },
  UNKNOWN: { status: 'UNKNOWN' },
};

/**
 * Validates the answer of a check, since checks come from users too and may not be type-checked. Aggregates
 * the status of a result with components. Copies the result, so that the check cannot change it later. Throws
 * TypeError for an invalid result.
 */
export function checkedResult(result: unknown): HealthResult {
  // CONTRACT.md#management-bodies and #health-status: DOWN on a non-zero code, which is shown in the details.
  if (result === 0) return PLAIN.UP;
  if (typeof result === 'number' && Number.isFinite(result))
    return { status: 'DOWN', details: { code: result } };
  const { status, components, details } = Object(result) as Readonly<Record<string, unknown>>;
  if (components === undefined) {
    if (isHealthStatus(status))
      return details === undefined ? PLAIN[status] : { status, details: details as Record<string, unknown> };
    throw new TypeError(
      'the check returned none of UP, DOWN, OUT_OF_SERVICE and UNKNOWN, nor a finite number',
    );
  }
  const parts = Object.entries(Object(components)).map(
    ([name, part]) => [name, checkedResult(part)] as const,
  );
  const whole = {
    status: aggregateStatus(parts.map(([, part]) => part.status)),
    components: Object.fromEntries(parts),
  };
  return details === undefined ? whole : { ...whole, details: details as Record<string, unknown> };
}

interface DiskSpaceOptions {
  /** A directory on the disk. */
  readonly path: string;
  /** DOWN below this free space, in bytes. */
  readonly thresholdBytes: number;
}

/** The free space of a disk, in Actuator's format. A missing directory is DOWN. */
export function diskSpaceCheck({ path, thresholdBytes: threshold }: DiskSpaceOptions): HealthIndicator {
  const absolute = resolve(path);

  function result(total: number, free: number, exists: boolean): HealthResult {
    const status = exists && free >= threshold ? 'UP' : 'DOWN';
    return { status, details: { total, free, threshold, path: absolute, exists } };
  }

  return {
    name: 'diskSpace',
    check: () =>
      statfs(absolute).then(
        // `bavail` excludes blocks reserved for root.
        ({ bsize, blocks, bavail }) => result(bsize * blocks, bsize * bavail, true),
        (error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOENT') throw error;
          return result(0, 0, false);
        },
      ),
  };
}

/** DOWN while the 99th percentile of the event loop's delay is above `thresholdMs`. */
export function eventLoopCheck(delay: Pick<EventLoopWindows, 'p99'>, thresholdMs: number): HealthIndicator {
  return {
    name: 'eventLoop',
    check() {
      const { p99 } = delay;
      // There is no measurement in the first window, when the process loads.
      if (p99 === undefined) return { status: 'UP', details: { thresholdMs } };
      const p99Ms = Math.round(p99);
      return { status: p99 > thresholdMs ? 'DOWN' : 'UP', details: { p99Ms, thresholdMs } };
    },
  };
}

/** The user agent of `portico health`. These probes route no traffic, so a stop does not wait for them. */
export const HEALTH_COMMAND = 'portico-health';

/** How the pre-stop delay is chosen if it is not set. Times are in milliseconds. */
export const PRE_STOP_DELAY = {
  /** If readiness is not probed. */
  usual: 300,
  /** Balancers mostly take a process out after three failures. */
  probes: 3,
  /** Time for the probes in addition to their intervals. */
  probeTime: 500,
  /** The longest delay for a prober. */
  max: 10_000,
} as const;
/** A prober that was not seen for so long is none any more, in milliseconds. */
const PROBER_GONE = 60_000;

/** Whether this process accepts new requests: true from the time all doors listen until the stop begins. */
export class Readiness {
  #accepting = false;
  #probedAt = Number.NEGATIVE_INFINITY;
  #interval = Number.POSITIVE_INFINITY;

  get accepting(): boolean {
    return this.#accepting;
  }

  /** Called once all doors listen. */
  accept(): void {
    this.#accepting = true;
  }

  /** Called when the stop begins: readiness fails first, then the doors drain. */
  refuse(): void {
    this.#accepting = false;
  }

  /** Called for each readiness probe, with the time of `performance.now()`. */
  probed(now: number): void {
    this.#interval = now - this.#probedAt;
    this.#probedAt = now;
  }

  /** The time between the last two probes, in milliseconds; undefined if readiness is not being probed. */
  interval(now: number): number | undefined {
    return now - this.#probedAt > PROBER_GONE || this.#interval > PROBER_GONE ? undefined : this.#interval;
  }

  /**
   * How long a stop should keep answering, so that load balancers see readiness fail and send requests
   * elsewhere: `PRE_STOP_DELAY`. In milliseconds.
   */
  preStopDelay(now: number): number {
    const interval = this.interval(now);
    const { usual, probes, probeTime, max } = PRE_STOP_DELAY;
    return interval === undefined ? usual : Math.min(Math.max(probes * interval + probeTime, usual), max);
  }
}

interface HealthRegistryOptions {
  /** Timeout of a check without its own, in milliseconds; default 5,000. */
  readonly timeoutMs?: number;
  /** Called for each run of a check. */
  readonly onChecked?: OnChecked;
  /** The clock for times to live, monotonic, in milliseconds. */
  readonly now?: () => number;
}

/** Two checks have the same name, or one has none; startup fails with this message. */
export class HealthCheckNameError extends Error {
  override readonly name = 'HealthCheckNameError';
  readonly code = 'HEALTH_CHECK_NAME';
}

const UNKNOWN: HealthResult = { status: 'UNKNOWN' };

interface Member {
  readonly name: string;
  readonly critical: boolean;
  readonly check: BoundedCheck;
}

/** Health checks by name. They run concurrently, each with a timeout. */
export class HealthRegistry {
  readonly #members: ReadonlyMap<string, Member>;
  /** All names, in the order of the checks. */
  readonly names: readonly string[];

  /** Throws HealthCheckNameError unless every indicator has a unique name. */
  constructor(
    indicators: readonly HealthIndicator[],
    options: HealthRegistryOptions = {},
    base?: HealthRegistry,
  ) {
    const { timeoutMs = 5_000, onChecked, now = () => performance.now() } = options;
    const members = new Map<string, Member>(base === undefined ? [] : base.#members);
    for (const indicator of indicators) {
      const { name, critical = true, ttlMs = 0, cacheUntil } = indicator;
      if (name === '' || members.has(name)) {
        throw new HealthCheckNameError(
          `The health check name ${JSON.stringify(name)} is empty or used twice. Give each check a unique name.`,
        );
      }
      const bounded = boundedCheck(indicator, indicator.timeoutMs ?? timeoutMs, onChecked);
      members.set(name, { name, critical, check: cachedCheck(bounded, { ttlMs, now, cacheUntil }) });
    }
    this.#members = members;
    this.names = [...members.keys()];
  }

  /** A registry with additional checks; both share the results of the existing ones. */
  with(indicators: readonly HealthIndicator[]): HealthRegistry {
    return new HealthRegistry(indicators, {}, this);
  }

  /** Runs the named checks, all by default; see `group`. */
  check(names: readonly string[] = this.names): MaybePromise<HealthReport> {
    return this.group(names)();
  }

  /** Returns a function that runs the named checks at once, never rejects, and repeats equal reports. */
  group(names: readonly string[]): () => MaybePromise<HealthReport> {
    const members = names.flatMap((name) => this.#members.get(name) ?? []);
    let last: HealthReport | undefined;
    let lastResults: readonly HealthResult[] = [];
    function settle(results: readonly HealthResult[]): HealthReport {
      if (last !== undefined && results.every((result, i) => result === lastResults[i])) return last;
      lastResults = results;
      last = report(members, results);
      return last;
    }
    return () => {
      const results = members.map(({ check }) => check());
      return results.some((result) => result instanceof Promise)
        ? Promise.all(results).then(settle)
        : settle(results as HealthResult[]);
    };
  }
}

function report(members: readonly Member[], results: readonly HealthResult[]): HealthReport {
  const all = members.map((member, i) => ({ ...member, result: results[i] ?? UNKNOWN }));
  return {
    status: aggregateStatus(all.filter(({ critical }) => critical).map(({ result }) => result.status)),
    components: Object.fromEntries(
      all.map(({ name, critical, result }) => [
        name,
        // Explains why the whole is UP although a part is DOWN.
        critical ? result : { ...result, details: { critical: false, ...result.details } },
      ]),
    ),
  };
}

/** By severity, in the order of Actuator. */
const ORDER: readonly HealthStatus[] = ['DOWN', 'OUT_OF_SERVICE', 'UP', 'UNKNOWN'];

export function isHealthStatus(value: unknown): value is HealthStatus {
  return ORDER.some((status) => status === value);
}

/** The worst of the given statuses; UP for none (CONTRACT.md#health-status). */
export function aggregateStatus(statuses: readonly HealthStatus[]): HealthStatus {
  return ORDER.find((status) => statuses.includes(status)) ?? 'UP';
}
