import type { HealthResult } from './health.ts';
import { aggregateStatus, isHealthStatus } from './status.ts';

/**
 * Validates the result of a check, because checks of users may be untyped. The status of a result with components is
 * aggregated from them. Throws TypeError for an invalid result.
 */
export function checkedResult(result: unknown): HealthResult {
  const { status, components, details } = Object(result) as Readonly<Record<string, unknown>>;
  if (components === undefined) {
    if (isHealthStatus(status)) return result as HealthResult;
    throw new TypeError('the check returned none of UP, DOWN, OUT_OF_SERVICE and UNKNOWN');
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
