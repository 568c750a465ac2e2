import type { HealthResult } from './health.ts';
import { aggregateStatus, isHealthStatus } from './status.ts';

/**
 * What a check returned, made sure of: checks come from users too, and not all of them are type-checked.
 * The status of a result with components is theirs taken together.
 * Throws TypeError for what is no result: no clear answer is no health.
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
