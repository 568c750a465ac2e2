import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Readiness } from '../observability/health/readiness.ts';

/** Waits between the failure of readiness and the closing of the doors, and logs why. */
export async function linger(
  configured: number | undefined,
  readiness: Readiness,
  log: Logger,
): Promise<void> {
  const now = performance.now();
  const milliseconds = configured ?? readiness.linger(now);
  if (milliseconds === 0) return;
  const interval = readiness.interval(now);
  const why =
    configured !== undefined
      ? 'shutdown.linger says so'
      : interval === undefined
        ? 'clients may be on their way'
        : `/readyz is probed every ${seconds(interval)} s and has to be seen failing`;
  log.info({ linger: milliseconds }, `answering for ${seconds(milliseconds)} s more: ${why}`);
  await delay(milliseconds);
}

const seconds = (milliseconds: number): number => Math.round(milliseconds / 100) / 10;
