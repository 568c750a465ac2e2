import { maskSecrets } from '../management/access/masking.ts';
import type { OnChecked } from '../observability/health/bounded-check.ts';
import type { HealthStatus } from '../observability/health/health.ts';
import type { Parts } from './parts.ts';

/** Slower checks are logged, in milliseconds. */
const SLOW = 10_000;

/** Times the runs of health checks, and logs when a status changes. */
export function healthWatch({ metrics, log }: Pick<Parts, 'metrics' | 'log'>): OnChecked {
  const timer = metrics.timer('health.check', { description: 'Runs of health checks', tags: ['check'] });
  const last = new Map<string, HealthStatus>();
  return (check, { status, details }, durationMs) => {
    timer.with('check', check).record(durationMs / 1_000);
    if (durationMs > SLOW) log.warn({ check, durationMs: Math.round(durationMs) }, 'health check slow');
    const before = last.get(check) ?? 'UP';
    last.set(check, status);
    if (status === before) return;
    if (status === 'UP') log.info({ check }, 'health check up again');
    else log.warn({ check, status, ...reason(details) }, 'health check failed');
  };
}

/** The details that name the reason. */
function reason({ error, code }: Readonly<Record<string, unknown>> = {}) {
  // Messages of drivers quote the URL that they could not connect to.
  return { error: typeof error === 'string' ? maskSecrets(error) : undefined, code };
}
