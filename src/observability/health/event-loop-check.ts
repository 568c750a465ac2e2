import type { EventLoopWindows } from '../runtime/event-loop-windows.ts';
import type { HealthIndicator } from './health.ts';

/** DOWN while the 99th percentile of the event loop's delay is above `thresholdMs`. */
export function eventLoopCheck(delay: Pick<EventLoopWindows, 'p99'>, thresholdMs: number): HealthIndicator {
  return {
    name: 'eventLoop',
    check() {
      const { p99 } = delay;
      // Nothing is measured yet in the first window, when the process loads.
      if (p99 === undefined) return { status: 'UP', details: { thresholdMs } };
      const p99Ms = Math.round(p99);
      return { status: p99 > thresholdMs ? 'DOWN' : 'UP', details: { p99Ms, thresholdMs } };
    },
  };
}
