import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import { parsePointer, valueAt } from '../core/json-pointer.ts';
import { type ClaimedJob, type Delivery, handlerTargetName } from '../inbox/delivery.ts';
import { parseDeliveryBody } from '../inbox/delivery-body.ts';
import { headersOf } from '../inbox/delivery-headers.ts';
import type { Target } from '../inbox/dispatch/target.ts';
import type { HandlerLog } from '../inbox/handler.ts';
import { headersOfTrace } from '../observability/trace/trace-fields.ts';

/** Defaults for targets. Times are in milliseconds. */
export type TargetDefaults = Pick<
  Target,
  'concurrency' | 'timeout' | 'maxAttempts' | 'keptAttempts' | 'backoff' | 'priority'
>;

/** The limits of a handler or forward address: its own, or the defaults. */
export function limitsOf(
  spec: Pick<HandlerSpec, 'concurrency' | 'timeout' | 'attempts' | 'priority'>,
  defaults: TargetDefaults,
): TargetDefaults {
  const { concurrency, timeout, attempts, priority } = spec;
  return {
    ...defaults,
    ...(typeof priority === 'number' && { priority }),
    concurrency: concurrency ?? defaults.concurrency,
    timeout: timeout ?? defaults.timeout,
    maxAttempts: attempts ?? defaults.maxAttempts,
  };
}

/** The handler of one event as a target of the dispatcher. `logOf` returns the log of one delivery. */
export function handlerTarget(
  event: string,
  spec: HandlerSpec,
  defaults: TargetDefaults,
  logOf: (job: ClaimedJob) => HandlerLog,
): Target {
  return {
    name: handlerTargetName(event),
    ...limitsOf(spec, defaults),
    run(job, signal) {
      const trace = headersOfTrace(job.delivery.trace);
      let log: HandlerLog | undefined;
      const context = {
        signal,
        trace,
        // Most handlers write no entry, and a log of its own costs as much as one.
        get log() {
          log ??= logOf(job);
          return log;
        },
      };
      return spec.handler(deliveryOf(job, event), context);
    },
  };
}

/** What the handler of an event gets of a job; docs/HANDLERS.md lists the members. */
export function deliveryOf({ attempt, delivery }: ClaimedJob, event: string): Delivery {
  const { id, source, senderEvent, dataPointer, receivedAt } = delivery;
  const body = parseDeliveryBody(delivery);
  const data = valueAt(body, parsePointer(dataPointer) ?? []);
  const names = { event, senderEvent: senderEvent ?? event };
  const headers = headersOf(delivery);
  return { id, source, ...names, data, body, headers, receivedAt: new Date(receivedAt), attempt };
}
