import type { BoundedCheck } from './bounded-check.ts';
import type { HealthResult } from './health.ts';

/** The maximum age of a stale result, as a multiple of its TTL. */
const MAX_STALENESS = 10;

/**
 * Caches the result of a check for `ttlMs`; 0 disables the cache. Serves a stale result while it revalidates, up to ten
 * times `ttlMs`. States: empty -> fresh -> stale -> expired, and fresh again from each once a run ends. Callers wait for
 * the run in `empty` and `expired`. `now` is a monotonic clock in milliseconds.
 */
export function cachedCheck(run: BoundedCheck, ttlMs: number, now: () => number): BoundedCheck {
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
    if (last === undefined) return fetch();
    const { result, at } = last;
    const age = now() - at;
    if (age < ttlMs) return result;
    const next = fetch();
    return next instanceof Promise && age < MAX_STALENESS * ttlMs ? result : next;
  };
}
