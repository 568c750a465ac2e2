import { pathTo } from '../config/schema/fields.ts';
import { parsePointer, valueAt } from '../core/json.ts';
import { quote } from '../core/text.ts';
import { headersOfTrace } from '../core/trace.ts';
import { type SourceLayout, type SourceSettings, valueAtPlace } from '../signatures/sources.ts';
import type { HandlerSpec } from './config.ts';
import {
  type ClaimedJob,
  type Delivery,
  type DeliveryHandler,
  type EventNames,
  type HandlerLog,
  handlerTargetName,
  type StoredDelivery,
} from './delivery.ts';
import { headersOf, parseDeliveryBody } from './delivery-body.ts';
import type { Target } from './dispatch/target.ts';
import type { ReplayPlan } from './operations.ts';

/** Defaults for targets. Times are in milliseconds. */
type TargetDefaults = Pick<
  Target,
  'concurrency' | 'timeout' | 'maxAttempts' | 'keptAttempts' | 'backoff' | 'priority'
>;

/** The limits of a handler or forward address: its own where set, else the defaults. */
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

/** An event's handler as a target of the dispatcher. `logOf` returns the log of one delivery. */
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
        // Created on first use: most handlers write no entry, and a child log costs as much as one.
        get log() {
          log ??= logOf(job);
          return log;
        },
      };
      return spec.handler(deliveryOf(job, event), context);
    },
  };
}

/** What the handler of an event gets for a job; docs/HANDLERS.md lists the members. */
export function deliveryOf({ attempt, delivery }: ClaimedJob, event: string): Delivery {
  const { id, source, senderEvent, dataPointer, receivedAt } = delivery;
  const body = parseDeliveryBody(delivery);
  const data = valueAt(body, parsePointer(dataPointer) ?? []);
  const names = { event, senderEvent: senderEvent ?? event };
  const headers = headersOf(delivery);
  return { id, source, ...names, data, body, headers, receivedAt: new Date(receivedAt), attempt };
}

/** The contract's handlers (CONTRACT.md#events), which only log. */
export const contractHandlers: Readonly<Record<string, DeliveryHandler>> = {
  new_commit: (_delivery, { log }) => {
    log.info('commit notification processed');
  },
  payment_received: (_delivery, { log }) => {
    log.info('payment notification processed');
  },
};

/**
 * The user's handlers and those of the contract. A contract handler is omitted if the user handles its event
 * under either name, because it would mark as done what the user means to handle.
 */
export function withContractHandlers(
  own: ReadonlyMap<string, HandlerSpec>,
  sources: readonly SourceSettings[],
): ReadonlyMap<string, HandlerSpec> {
  const handlers = new Map(own);
  for (const [event, handler] of Object.entries(contractHandlers)) {
    const names = [event, ...sources.flatMap((source) => senderNames(source, event))];
    if (!names.some((name) => own.has(name))) handlers.set(event, { handler });
  }
  return handlers;
}

// An event of a signed source can have two names: the sender's, such as GitHub's `push`, and the one that the
// source maps it to, such as `new_commit`. A delivery without a sender has one name, which never changes.

type Handlers = ReadonlyMap<string, HandlerSpec>;
type Renaming = Pick<SourceSettings, 'name' | 'events'>;

/** The entry for an event, with precedence for the sender's name; undefined without one. */
export function handlerOf<T>({ event, senderEvent }: EventNames, handlers: ReadonlyMap<string, T>) {
  const own = senderEvent == null ? undefined : handlers.get(senderEvent);
  return own ?? (event === null ? undefined : handlers.get(event));
}

/** The sender's names of the events that a source maps to `event`. */
function senderNames({ events }: Pick<SourceLayout, 'events'>, event: string): readonly string[] {
  return [...events].flatMap(([own, given]) => (given === event && own !== event ? [own] : []));
}

/** The sender's name of an event, given either name; the first if a source maps several to it. */
export function sentName(layout: Pick<SourceLayout, 'events'>, event: string): string {
  if (layout.events.has(event)) return event;
  return senderNames(layout, event)[0] ?? event;
}

/**
 * Reports handlers that no event reaches: each event that sources map to the name has a handler under the
 * sender's name, which takes precedence, and no source or schedule uses the name itself. One line per
 * handler; `path` is the path of the handlers.
 */
export function unreachableHandlers(
  handlers: Handlers,
  sources: readonly Renaming[],
  schedules: readonly { readonly event: string }[],
  path: string,
): readonly string[] {
  return [...handlers.keys()].flatMap((name) => {
    const renaming = sources.flatMap((source) => {
      const own = senderNames(source, name);
      return own.length === 0 ? [] : [{ source: `webhook.sources.${source.name}`, own }];
    });
    const isNamed =
      sources.some(({ events }) => events.has(name)) || schedules.some(({ event }) => event === name);
    const isTaken = renaming.every(({ own }) => own.every((each) => handlers.has(each)));
    if (renaming.length === 0 || isNamed || !isTaken) return [];
    const taken = renaming.map(({ source, own }) => `${own.map(quote).join(', ')} of ${source}`);
    const apart = renaming.map(({ source, own }) => {
      return `${source}.events: { ${own.map((each) => `${quote(each)}: ${quote(each)}`).join(', ')} }`;
    });
    return (
      `${pathTo(path, name)} gets no event of a source: it is another name for ${taken.join(' and ')}, and handlers ` +
      `under the sender's own names win; remove either, or, if its events come from elsewhere, keep the names apart ` +
      `by ${apart.join(' and ')}`
    );
  });
}

/** The plan of a replay, which finds out the sender's event name of deliveries that were stored without. */
export function planOfReplay(plan: ReplayPlan, sources: readonly SourceSettings[]): ReplayPlan {
  return (delivery, body) => plan({ ...delivery, senderEvent: senderEventOf(delivery, body, sources) }, body);
}

function senderEventOf(
  delivery: EventNames & Pick<StoredDelivery, 'source' | 'headers'>,
  body: unknown,
  sources: readonly SourceSettings[],
): string | null {
  const { event, senderEvent = null } = delivery;
  const source = senderEvent === null ? sources.find(({ name }) => name === delivery.source) : undefined;
  if (source === undefined || event === null) return senderEvent;
  const own = valueAtPlace(source.event, headersOf(delivery), body);
  return senderNames(source, event).find((name) => name === own) ?? null;
}
