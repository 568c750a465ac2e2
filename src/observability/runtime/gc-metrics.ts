import { constants, type PerformanceNodeEntry, PerformanceObserver } from 'node:perf_hooks';
import type { Metrics } from '../metrics/metrics.ts';
import type { Timer } from '../metrics/timer.ts';

/** In seconds; the bounds of prom-client. */
const BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5];

const KINDS = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/** Times the pauses of the garbage collector by kind, until the result is disposed of. */
export function observeGc(metrics: Metrics): Disposable {
  const timer = metrics.timer('nodejs.gc.duration', {
    description: 'Pauses of the garbage collector by kind: minor, major, incremental or weakcb',
    tags: ['kind'],
    buckets: BUCKETS,
  });
  return timePauses((kind) => timer.with('kind', kind));
}

/** The same under the name and with the tags of a JVM's meter. */
export function observeGcAsJvm(metrics: Metrics): Disposable {
  const timer = metrics.timer('jvm.gc.pause', {
    description: 'Pauses of the garbage collector',
    tags: ['action', 'cause'],
    buckets: BUCKETS,
  });
  return timePauses((kind) => timer.with('action', kind, 'cause', 'V8'));
}

function timePauses(timerOf: (kind: string) => Timer): Disposable {
  // All series exist from the start, so that the first pause shows as an increase.
  const series = new Map(Object.entries(KINDS).map(([number, kind]) => [Number(number), timerOf(kind)]));
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as PerformanceNodeEntry).detail as { readonly kind: number };
      series.get(kind)?.record(entry.duration / 1_000);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return { [Symbol.dispose]: () => observer.disconnect() };
}
