import { whenReady } from '../../core/maybe-promise.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import { sharedReading } from '../../observability/metrics/shared-reading.ts';
import type { Backlog, Inbox } from '../inbox.ts';

/** Counting a long backlog is slow, so a reading is reused for this long, in milliseconds. */
const MAX_AGE = 5_000;

/**
 * Adds the gauges of the backlog. With an asynchronous engine they show its last answer, and NaN before the first one
 * and after a failure. `now` is a clock in milliseconds since the epoch.
 */
export function addBacklogMetrics(
  metrics: Metrics,
  inbox: Pick<Inbox, 'backlog'>,
  now: () => number = Date.now,
): void {
  let last: Backlog | undefined;
  const refresh = sharedReading(() => {
    const read = whenReady(inbox.backlog(), (backlog) => {
      last = backlog;
    });
    read?.catch(() => {
      last = undefined;
    });
  }, MAX_AGE);

  const gauge = (name: string, unit: string | undefined, description: string, of: (b: Backlog) => number) =>
    metrics.gauge(name, { unit, description }, () => {
      refresh();
      return last === undefined ? Number.NaN : of(last);
    });
  gauge('webhook.backlog', undefined, 'Open jobs, including leased ones', ({ open }) => open);
  gauge('webhook.backlog.age', 'seconds', 'Age of the oldest delivery with an open job', ({ oldestAt }) =>
    oldestAt === undefined ? 0 : Math.max(0, now() - oldestAt) / 1_000,
  );
  gauge('webhook.dead', undefined, 'Dead jobs, which are not retried', ({ dead }) => dead);
}
