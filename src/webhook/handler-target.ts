import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import { parsePointer, valueAt } from '../core/json-pointer.ts';
import type { ClaimedJob, Delivery } from '../inbox/delivery.ts';
import { parseDeliveryBody } from '../inbox/delivery-body.ts';
import type { HandlerLog } from '../inbox/handler.ts';
import type { Target } from '../inbox/target.ts';

/** How jobs are run where nothing else is said. Times are in milliseconds. */
export type TargetDefaults = Pick<Target, 'concurrency' | 'timeout' | 'maxAttempts' | 'backoff'>;

/** The name of the target that an event's handler is. */
export function handlerTargetName(event: string): string {
  return `handler:${event}`;
}

/** The handler of one event as a target of the dispatcher. `logOf` gives the log of one delivery. */
export function handlerTarget(
  event: string,
  spec: HandlerSpec,
  defaults: TargetDefaults,
  logOf: (job: ClaimedJob) => HandlerLog,
): Target {
  return {
    name: handlerTargetName(event),
    concurrency: spec.concurrency ?? defaults.concurrency,
    timeout: spec.timeout ?? defaults.timeout,
    maxAttempts: spec.attempts ?? defaults.maxAttempts,
    backoff: defaults.backoff,
    ordered: spec.order !== undefined,
    run: (job, signal) => spec.handler(deliveryOf(job, event), { signal, log: logOf(job) }),
  };
}

function deliveryOf({ attempt, delivery }: ClaimedJob, event: string): Delivery {
  const { id, source, dataPointer, receivedAt } = delivery;
  const data = valueAt(parseDeliveryBody(delivery), parsePointer(dataPointer) ?? []);
  return { id, source, event, data, receivedAt: new Date(receivedAt), attempt };
}
