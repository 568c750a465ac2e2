import * as v from 'valibot';
import type { DeliveryHandler } from '../../inbox/handler.ts';
import { countField, functionField, toggleField } from './fields.ts';
import { type Given, namedOf } from './given.ts';
import { readObject, type Written } from './read-object.ts';
import { checkFilter, filterField } from './webhook-condition.ts';
import { orderField, priorityField, runAtField } from './webhook-rules.ts';

const handlerSchema = v.object(
  {
    handler: functionField<DeliveryHandler>(),
    /** Maximum deliveries at the same time. */
    concurrency: v.optional(countField),
    /** Timeout of an attempt, in milliseconds. */
    timeout: v.optional(countField),
    /** Maximum attempts before a delivery is dead. */
    attempts: v.optional(countField),
    /** The deliveries of the event that it handles; default all. */
    when: v.optional(filterField),
    /** Whether it runs in a worker thread; only one that the configuration module has can. */
    isolate: v.optional(toggleField),
    order: v.optional(orderField),
    priority: v.optional(priorityField),
    runAt: v.optional(runAtField),
  },
  'must be a function, or an object with a function as its "handler"',
);

/** A handler with its own limits; the options of the webhook door are their defaults. */
export type HandlerSpec = Written<typeof handlerSchema>;

/** Reads `webhook.handlers`: by event a function, or an object with a function and its limits. */
export function readHandlers(given: Given, problems: string[]): ReadonlyMap<string, HandlerSpec> {
  const read = namedOf(given, 'functions', problems).flatMap((entry) => {
    const value = typeof entry.value === 'function' ? { handler: entry.value } : entry.value;
    const spec = readObject(handlerSchema, { ...entry, value }, problems);
    checkFilter(entry, problems);
    return spec === undefined ? [] : [[entry.name, spec] as const];
  });
  return new Map(read);
}
