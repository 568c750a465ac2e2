import type { Metrics } from '../metrics/metrics.ts';
import { observeEventLoop } from './event-loop-metrics.ts';
import { observeGc } from './gc-metrics.ts';
import { addHeapMetrics } from './heap-metrics.ts';
import { addProcessMetrics } from './process-metrics.ts';

/** Adds the meters of the process, V8 and the event loop, until the result is disposed of. */
export function observeRuntime(metrics: Metrics): Disposable {
  using stack = new DisposableStack();
  addProcessMetrics(metrics);
  addHeapMetrics(metrics);
  stack.use(observeGc(metrics));
  stack.use(observeEventLoop(metrics));
  return stack.move();
}
