import type { Metrics } from '../observability/metrics/metrics.ts';
import { sharedReading } from '../observability/metrics/shared-reading.ts';
import type { Backlog, Inbox } from './inbox.ts';

/** A long backlog takes long to count; it is looked at no more often than this, in milliseconds. */
const MAX_AGE = 5_000;

/**
 * The gauges of what waits to be handled. An engine that answers later is shown with its last answer, and
 * with no number while it has none. `now` is in milliseconds since the epoch, as deliveries have it.
 */
export function addBacklogMetrics(
  metrics: Metrics,
  inbox: Pick<Inbox, 'backlog'>,
  now: () => number = Date.now,
): void {
  let known: Backlog | undefined;
  const know = (answer: Backlog | undefined) => {
    known = answer;
  };
  const ask = sharedReading(() => {
    const answer = inbox.backlog();
    if (answer instanceof Promise) answer.then(know, () => know(undefined));
    else know(answer);
  }, MAX_AGE);

  const gauge = (name: string, unit: string | undefined, description: string, of: (b: Backlog) => number) =>
    metrics.gauge(name, { unit, description }, () => {
      ask();
      return known === undefined ? Number.NaN : of(known);
    });
  gauge('webhook.backlog', undefined, 'Jobs that are open, those in hand included', ({ open }) => open);
  gauge('webhook.backlog.age', 'seconds', 'How long the oldest open job waits', ({ oldestAt }) =>
    oldestAt === undefined ? 0 : Math.max(0, now() - oldestAt) / 1_000,
  );
  gauge('webhook.dead', undefined, 'Jobs that have failed for good', ({ dead }) => dead);
}
