import type { HealthStatus } from './health.ts';

/** By severity, in the order of Actuator. */
const ORDER: readonly HealthStatus[] = ['DOWN', 'OUT_OF_SERVICE', 'UP', 'UNKNOWN'];

/** Whether any value is a status. */
export function isHealthStatus(value: unknown): value is HealthStatus {
  return ORDER.some((status) => status === value);
}

/** The status of a whole: that of its worst part (contract 3: DOWN when a check fails), UP without parts. */
export function aggregateStatus(statuses: readonly HealthStatus[]): HealthStatus {
  return ORDER.find((status) => statuses.includes(status)) ?? 'UP';
}
