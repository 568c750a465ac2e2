import { whenReady } from '../core/maybe-promise.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';
import { sharedReading } from '../observability/metrics/shared-reading.ts';
import type { Inbox } from './inbox.ts';

/** A measured difference is shown for this long, in milliseconds. */
const MAX_AGE = 5_000;

/**
 * Adds the gauge of the difference between the clock of this process and that of the store, which decides what is due.
 * It is NaN before the first answer and after a failure.
 */
export function addClockMetrics(metrics: Metrics, inbox: Pick<Inbox, 'clock'>): void {
  let ahead = Number.NaN;
  const refresh = sharedReading(() => {
    const before = Date.now();
    const read = whenReady(inbox.clock(), (time) => {
      // The store has read its clock somewhere between the two.
      ahead = (before + Date.now()) / 2 - time;
    });
    read?.catch(() => {
      ahead = Number.NaN;
    });
  }, MAX_AGE);
  const description = 'How far the clock of this process is ahead of that of the database';
  metrics.gauge('webhook.clock.skew', { unit: 'seconds', description }, () => {
    refresh();
    return ahead / 1_000;
  });
}
