import type { BoundedCheck } from './bounded-check.ts';
import type { HealthIndicator, HealthResult } from './health.ts';

/** A result is served for at most so many times its time to live, while a newer one is being fetched. */
const MAX_STALENESS = 10;

interface CachedCheckOptions extends Pick<HealthIndicator, 'cacheUntil'> {
  /** 0 keeps nothing. */
  readonly ttlMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/**
 * Keeps the result of a check for `ttlMs`. Afterwards a call still gets the old result at once, and
 * the check runs in the background; a result older than ten times `ttlMs` is not served any more.
 * States: empty -> fresh -> stale -> expired, and fresh again from each of them once a run ends. Only in `empty` and
 * `expired` a call waits for the run.
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
