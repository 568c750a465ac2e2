import type { HealthIndicator, HealthResult } from '../observability/health/health.ts';
import type { Database } from './database.ts';

const UP: HealthResult = { status: 'UP' };

/** Whether the database answers. */
export function databaseCheck(database: Pick<Database, 'ping'>): HealthIndicator {
  return {
    name: 'db',
    check() {
      const answer = database.ping();
      return answer instanceof Promise ? answer.then(() => UP) : UP;
    },
  };
}
