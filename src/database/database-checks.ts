import { whenReady } from '../core/maybe-promise.ts';
import type { HealthIndicator, HealthResult } from '../observability/health/health.ts';
import type { Database } from './database.ts';

const UP: HealthResult = { status: 'UP' };

/** Longer than any commit that a client would wait for: a hung fsync is DOWN after this, in milliseconds. */
const WRITER_TIMEOUT = 2_000;

/** Checks that the database answers a read. */
export function databaseCheck(database: Pick<Database, 'ping'>): HealthIndicator {
  return { name: 'db', check: () => whenReady(database.ping(), () => UP) };
}

/** Checks that writes commit: a hung disk blocks the writer while reads still answer. */
export function writerCheck(database: Pick<Database, 'pingWriter'>): HealthIndicator {
  return {
    name: 'writer',
    timeoutMs: WRITER_TIMEOUT,
    check: () => whenReady(database.pingWriter(), () => UP),
  };
}
