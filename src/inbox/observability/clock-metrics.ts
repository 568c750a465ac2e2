import { whenReady } from '../../core/maybe-promise.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import type { Inbox } from '../inbox.ts';
import { ClockSkew } from './clock-skew.ts';

/**
 * Adds the gauge of the difference between the clock of this process and that of the store. It is NaN before the first
 * answer and after a failure.
 */
export function addClockMetrics(metrics: Metrics, inbox: Pick<Inbox, 'clock'>): void {
  const skew = ClockSkew.of(inbox);
  let ahead = Number.NaN;
  const description = 'How far the clock of this process is ahead of that of the database';
  metrics.gauge('webhook.clock.skew', { unit: 'seconds', description }, () => {
    void whenReady(skew.read(), (measured) => {
      ahead = measured;
    });
    return ahead / 1_000;
  });
}
