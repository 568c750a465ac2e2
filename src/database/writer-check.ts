import type { HealthIndicator, HealthResult } from '../observability/health/health.ts';
import type { Database } from './database.ts';

const UP: HealthResult = { status: 'UP' };

/** Longer than any commit that a client would wait for; a sync that hangs is DOWN after it, in milliseconds. */
const TIMEOUT = 2_000;

/** Whether writes come through: a disk that hangs holds up the writer, and nothing else would tell of it. */
export function writerCheck(database: Pick<Database, 'pingWriter'>): HealthIndicator {
  return {
    name: 'writer',
    timeoutMs: TIMEOUT,
    check() {
      const answer = database.pingWriter();
      return answer instanceof Promise ? answer.then(() => UP) : UP;
    },
  };
}
