import { parsePointer, valueAt } from '../core/json.ts';
import { isThenable } from '../core/maybe-promise.ts';
import { describeKind } from '../core/text.ts';
import {
  type DeliveryFacts,
  MAX_PRIORITY,
  parseIsoTime,
  type ReceivedDelivery,
  receivedDelivery,
} from './delivery.ts';

/**
 * Returns whether a handler or forward address wants a delivery. It must be synchronous and return the same
 * result for the same delivery, because it is called again after an error.
 */
export type DeliveryPredicate = (delivery: ReceivedDelivery) => boolean | null | undefined;

/**
 * Returns the priority of a delivery, from 0 to 100; null and undefined mean 0. Synchronous, like a filter.
 */
export type DeliveryPriority = (delivery: ReceivedDelivery) => number | null | undefined;

/**
 * Returns the earliest time at which a delivery is handled: a Date, milliseconds since the epoch or ISO 8601
 * text. Null and undefined mean at once. Synchronous, like a filter.
 */
export type DeliveryTime = (delivery: ReceivedDelivery) => Date | number | string | null | undefined;

/**
 * Returns the order key of a delivery, a JSON value; null and undefined mean no order. Synchronous, like a
 * filter.
 */
export type DeliveryKey = (delivery: ReceivedDelivery) => unknown;

/** A delivery as passed to the transformation of a forward address. */
export interface ForwardedDelivery extends ReceivedDelivery {
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** The received content type. */
  readonly contentType: string | null;
  /** The received body, byte for byte. */
  readonly rawBody: Uint8Array;
}

/** What to send instead of the received delivery; omitted members stay unchanged. */
export interface TransformedDelivery {
  /** Strings and bytes are sent unchanged, any other value as JSON. */
  readonly body?: unknown;
  /** Additional headers; they may replace `content-type` and `user-agent`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The address to send to; http or https. */
  readonly url?: string | URL;
}

/** Changes what is forwarded. If it throws, rejects or exceeds the timeout, the attempt fails. */
export type DeliveryTransform = (
  delivery: ForwardedDelivery,
  context: {
    /** Aborts at the timeout of the attempt and when the process stops. */
    readonly signal: AbortSignal;
  },
) => TransformedDelivery | Promise<TransformedDelivery>;

/** A delivery for the rules of targets; the argument of rule functions is built once, on first use. */
export class AskedDelivery {
  /** The parsed body. */
  readonly body: unknown;
  readonly #facts: DeliveryFacts;
  #received: ReceivedDelivery | undefined;

  constructor(facts: DeliveryFacts, body: unknown) {
    this.#facts = facts;
    this.body = body;
  }

  /** The delivery with its event called `event`, for the rules of a handler. */
  calledBy(event: string | null): AskedDelivery {
    return event === this.#facts.event ? this : new AskedDelivery({ ...this.#facts, event }, this.body);
  }

  get received(): ReceivedDelivery {
    this.#received ??= receivedDelivery(this.#facts, this.body);
    return this.#received;
  }
}

/** Returns the value that a JSON pointer into the body, or a function, gives for a delivery. */
export function ruleValue(
  rule: string | ((delivery: ReceivedDelivery) => unknown),
  name: string,
): (asked: AskedDelivery) => unknown {
  if (typeof rule === 'function') return ({ received }) => synchronous(rule(received), name);
  const pointer = parsePointer(rule) ?? [];
  return ({ body }) => valueAt(body, pointer);
}

/** Rejects a promise: it would count as true, and as the same key for all deliveries. */
function synchronous(result: unknown, name: string): unknown {
  if (!isThenable(result)) return result;
  // Its rejection would otherwise be unhandled.
  result.then(undefined, () => {});
  throw new TypeError(`${name} returned a promise; it must be synchronous`);
}

/**
 * Returns a number, or undefined if the rule does not apply to the delivery. An invalid value is reported to
 * `onInvalid` and treated as undefined.
 */
export type NumberRule = (
  asked: AskedDelivery,
  onInvalid: (problem: TypeError) => void,
) => number | undefined;

/** A rule that returns the priority of a delivery, from 0 to MAX_PRIORITY. */
export function priorityRule(rule: string | DeliveryPriority): NumberRule {
  const given = ruleValue(rule, 'priority');
  return (asked, onInvalid) => {
    const value = given(asked);
    if (value === undefined || value === null) return undefined;
    if (Number.isInteger(value)) return Math.min(MAX_PRIORITY, Math.max(0, Number(value)));
    onInvalid(new TypeError(`priority is ${describeKind(value)}, not a whole number`));
    return undefined;
  };
}

/** A rule that returns the time before which a delivery is not due, in milliseconds since the epoch. */
export function runAtRule(rule: string | DeliveryTime): NumberRule {
  const given = ruleValue(rule, 'runAt');
  return (asked, onInvalid) => {
    const value = given(asked);
    if (value === undefined || value === null) return undefined;
    const time = timeOf(value);
    if (time === undefined) onInvalid(new TypeError(`runAt is ${describeKind(value)}, not a time`));
    return time;
  };
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? parseIsoTime(value, 'Z') : value;
  if (typeof time !== 'number' && !(time instanceof Date)) return undefined;
  // Rounded up to a whole millisecond, so that it is never early. `Date` limits the range.
  const ms = new Date(Math.ceil(Number(time))).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}
