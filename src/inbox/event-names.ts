import type { HandlerSpec } from '../config/schema/code.ts';
import { pathTo } from '../config/schema/fields.ts';
import { parsePointer, valueAt } from '../core/json.ts';
import { quote } from '../core/text.ts';
import { headersOfTrace } from '../core/trace.ts';
import { type SourceLayout, type SourceSettings, valueAtPlace } from '../signatures/sources.ts';
import type { DeliveryHandler, HandlerLog } from './delivery.ts';
import {
  type ClaimedJob,
  type Delivery,
  type EventNames,
  handlerTargetName,
  headersOf,
  parseDeliveryBody,
  type StoredDelivery,
} from './delivery.ts';
import type { Target } from './dispatch/target.ts';
import type { ReplayPlan } from './operations.ts';
import type { Schedule } from './schedules.ts';

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

/** The handlers of the events in the contract (CONTRACT.md#events), which log. */
export const contractHandlers: Readonly<Record<string, DeliveryHandler>> = {
  new_commit: (_delivery, { log }) => {
    log.info('commit notification processed');
  },
  payment_received: (_delivery, { log }) => {
    log.info('payment notification processed');
  },
};

/**
 * The user's handlers with those of the contract. One of the contract steps aside once the user has a handler for its
 * event, under either of its names: it would mark what the user means to handle as done.
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

// An event of a signed source can have two names: the sender's own, such as GitHub's `push`, and the one that the source
// gives it here, such as `new_commit`. A delivery without a sender has one name, which is never changed.

type Handlers = ReadonlyMap<string, HandlerSpec>;
type Renaming = Pick<SourceSettings, 'name' | 'events'>;

/** What is configured for an event as a handler, by either name: the sender's own wins. Undefined when nothing is. */
export function handlerOf<T>({ event, senderEvent }: EventNames, handlers: ReadonlyMap<string, T>) {
  const own = senderEvent == null ? undefined : handlers.get(senderEvent);
  return own ?? (event === null ? undefined : handlers.get(event));
}

/** The sender's own names of an event, by the name that a source gives it. */
function senderNames({ events }: Pick<SourceLayout, 'events'>, event: string): readonly string[] {
  return [...events].flatMap(([own, given]) => (given === event && own !== event ? [own] : []));
}

/**
 * The name under which a sender sends an event that is called by either name; the first one where a source gives several
 * events the same name.
 */
export function sentName(layout: Pick<SourceLayout, 'events'>, event: string): string {
  if (layout.events.has(event)) return event;
  return senderNames(layout, event)[0] ?? event;
}

/**
 * The handlers that no sender reaches: all events that sources give this name have handlers under the senders' own names,
 * which win, and no source and no schedule names an event so. One line per handler; `path` is that of the handlers.
 */
export function unreachableHandlers(
  handlers: Handlers,
  sources: readonly Renaming[],
  schedules: readonly Pick<Schedule, 'event'>[],
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

/**
 * The plan of a replay. A delivery that was stored before the sender's own name was is asked for it: its body, or the
 * headers that it kept, have the name.
 */
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
