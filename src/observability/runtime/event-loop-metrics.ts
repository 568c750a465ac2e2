import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';
import { EventLoopWindows } from './event-loop-windows.ts';

/**
 * The meters of the event loop: how late it was with what was due, and how busy, over the last one to two
 * minutes, until what it returns is disposed of. Unlike what the Prometheus client for Node shows under the
 * same names they are of a window, so that two scrapers do not take each other's values away, and they are
 * pure delay: a loop that is on time shows 0, not the time between two looks.
 */
export function observeEventLoop(metrics: Metrics): Disposable {
  const windows = new EventLoopWindows();
  const reading = sharedReading(() => windows.read());
  const delay = (name: string, description: string, key: string) =>
    metrics.gauge(name, { unit: 'seconds', description }, () => (reading().delay[key] ?? Number.NaN) / 1_000);
  delay('nodejs.eventloop.lag', 'How late the event loop was on average', 'mean');
  delay('nodejs.eventloop.lag.mean', 'How late the event loop was on average', 'mean');
  delay('nodejs.eventloop.lag.min', 'The least that the event loop was late', 'min');
  delay('nodejs.eventloop.lag.max', 'The most that the event loop was late', 'max');
  for (const percent of [50, 90, 99]) {
    const description = `What ${percent} of 100 delays of the event loop stayed below`;
    delay(`nodejs.eventloop.lag.p${percent}`, description, `p${percent}`);
  }
  const description = 'How much of the time the event loop was busy, from 0 to 1';
  metrics.gauge('nodejs.eventloop.utilization', { description }, () => reading().utilization.window);
  return windows;
}
