import { resolvePointer } from '../http/json-pointer.ts';
import type { NewJob } from '../inbox/delivery.ts';
import type { HandlerSpec } from '../inbox/handler.ts';
import { handlerTargetName } from './handler-target.ts';

/** Decides which jobs a delivery gets: one of its event's handler, if there is one. */
export type JobPlan = (event: string | null, body: unknown) => readonly NewJob[];

export function createJobPlan(handlers: ReadonlyMap<string, HandlerSpec>): JobPlan {
  return (event, body) => {
    const spec = event === null ? undefined : handlers.get(event);
    if (event === null || spec === undefined) return [];
    return [{ target: handlerTargetName(event), orderKey: orderKeyOf(body, spec.order) }];
  };
}

/** Deliveries without the key are in no order. */
function orderKeyOf(body: unknown, pointer: string | undefined): string | null {
  if (pointer === undefined) return null;
  const key = resolvePointer(body, pointer);
  return key === undefined || key === null ? null : JSON.stringify(key);
}
