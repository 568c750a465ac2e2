import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import { type JsonPointer, parsePointer, valueAt } from '../core/json-pointer.ts';
import type { NewJob } from '../inbox/delivery.ts';
import { forwardTargetName } from './forward/forward-target.ts';
import type { ForwardSettings } from './forward/read-forwards.ts';
import { handlerTargetName } from './handler-target.ts';

/** Decides which jobs a delivery gets: one for its event's handler, if any, and one for each forward address of the event. */
export type JobPlan = (event: string | null, body: unknown) => readonly NewJob[];

/** Creates the plan of these handlers, by event, and forward addresses. */
export function createJobPlan(
  handlers: ReadonlyMap<string, HandlerSpec>,
  forwards: readonly ForwardSettings[] = [],
): JobPlan {
  const orders = new Map<string, JsonPointer | undefined>(
    [...handlers].map(([event, { order }]) => [event, order === undefined ? undefined : parsePointer(order)]),
  );
  return (event, body) => {
    const jobs: NewJob[] = [];
    if (event !== null && orders.has(event)) {
      jobs.push({ target: handlerTargetName(event), orderKey: orderKeyOf(body, orders.get(event)) });
    }
    for (const { name, events } of forwards) {
      if (events === undefined || (event !== null && events.includes(event))) {
        jobs.push({ target: forwardTargetName(name), orderKey: null });
      }
    }
    return jobs;
  };
}

/** The order key of a delivery; null, which means unordered, when the body has none. */
function orderKeyOf(body: unknown, pointer: JsonPointer | undefined): string | null {
  if (pointer === undefined) return null;
  const key = valueAt(body, pointer);
  return key === undefined || key === null ? null : JSON.stringify(key);
}
