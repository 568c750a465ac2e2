import type { HealthResult, HealthStatus } from './health.ts';
import { aggregateStatus, isHealthStatus } from './status.ts';

/** One result for each status, so that equal results are identical: caches of replies compare them by identity. */
const PLAIN: Readonly<Record<HealthStatus, HealthResult>> = {
  UP: { status: 'UP' },
  DOWN: { status: 'DOWN' },
  OUT_OF_SERVICE: { status: 'OUT_OF_SERVICE' },
  UNKNOWN: { status: 'UNKNOWN' },
};

/**
 * Validates what a check returned: checks come from users too, and not all of them are type-checked. The status of a
 * result with components is aggregated from theirs. The result is no object of the check's own, which could change it
 * later. Throws TypeError for what is no result.
 */
export function checkedResult(result: unknown): HealthResult {
  // contract 2.4 and 3: DOWN on a non-zero code, which is shown in the details.
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
