import type { Metrics } from '../metrics/metrics.ts';
import { observeEventLoop } from './event-loop-metrics.ts';
import { observeGc } from './gc-metrics.ts';
import { addHeapMetrics } from './heap-metrics.ts';
import { addProcessMetrics } from './process-metrics.ts';

/** Adds the meters of the process, of V8 and of the event loop; they are observed until it is disposed of. */
export function observeRuntime(metrics: Metrics): Disposable {
  using stack = new DisposableStack();
  addProcessMetrics(metrics);
  addHeapMetrics(metrics);
  stack.use(observeGc(metrics));
  stack.use(observeEventLoop(metrics));
  return stack.move();
}
