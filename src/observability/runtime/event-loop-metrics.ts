import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';
import { EventLoopWindows } from './event-loop-windows.ts';

/**
 * Adds the meters of the event loop, its delay and utilization over the last one to two minutes, until the result is
 * disposed of. Unlike prom-client's meters of the same names they cover a time window, so that several scrapers do not
 * reset each other, and they exclude the sampling interval: an idle loop shows 0.
 */
export function observeEventLoop(metrics: Metrics): Disposable {
  const windows = new EventLoopWindows();
  const reading = sharedReading(() => windows.read());
  const delay = (name: string, description: string, key: string) =>
    metrics.gauge(name, { unit: 'seconds', description }, () => (reading().delay[key] ?? Number.NaN) / 1_000);
  delay('nodejs.eventloop.lag', 'Mean delay of the event loop', 'mean');
  delay('nodejs.eventloop.lag.mean', 'Mean delay of the event loop', 'mean');
  delay('nodejs.eventloop.lag.min', 'Minimum delay of the event loop', 'min');
  delay('nodejs.eventloop.lag.max', 'Maximum delay of the event loop', 'max');
  for (const percent of [50, 90, 99]) {
    const description = `${percent}th percentile of the delay of the event loop`;
    delay(`nodejs.eventloop.lag.p${percent}`, description, `p${percent}`);
  }
  const description = 'Utilization of the event loop, from 0 to 1';
  metrics.gauge('nodejs.eventloop.utilization', { description }, () => reading().utilization.window);
  return windows;
}
