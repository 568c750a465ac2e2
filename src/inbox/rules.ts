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
 * Says whether a handler or forward address wants a delivery. It has to be synchronous, and to give the same answer for
 * the same delivery: after an error it is asked again.
 */
export type DeliveryPredicate = (delivery: ReceivedDelivery) => boolean | null | undefined;

/** Gives the priority of a delivery, from 0 to 100; null and undefined mean 0. Synchronous, as a filter. */
export type DeliveryPriority = (delivery: ReceivedDelivery) => number | null | undefined;

/**
 * Gives the time before which a delivery is not handled, as a date, in milliseconds or as an ISO 8601 text; null and
 * undefined mean at once. Synchronous, as a filter.
 */
export type DeliveryTime = (delivery: ReceivedDelivery) => Date | number | string | null | undefined;

/** Gives the key of a delivery, a JSON value; null and undefined mean that it is not ordered. Synchronous, as a filter. */
export type DeliveryKey = (delivery: ReceivedDelivery) => unknown;

/** A delivery as the transformation of a forward address gets it. */
export interface ForwardedDelivery extends ReceivedDelivery {
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** The received content type. */
  readonly contentType: string | null;
  /** The received body, byte for byte. */
  readonly rawBody: Uint8Array;
}

/** What is sent in place of the received delivery; what is left out stays as it was. */
export interface TransformedDelivery {
  /** A text or bytes are sent as they are, all else as JSON. */
  readonly body?: unknown;
  /** Further headers, or others in place of `content-type` and `user-agent`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Where it is sent; http or https. */
  readonly url?: string | URL;
}

/** Changes what is forwarded. When it throws, rejects or is not done at the timeout, the attempt has failed. */
export type DeliveryTransform = (
  delivery: ForwardedDelivery,
  context: {
    /** Aborts at the timeout of the attempt, and when the process stops. */
    readonly signal: AbortSignal;
  },
) => TransformedDelivery | Promise<TransformedDelivery>;

/** A delivery that the rules of targets are asked about; what functions get is made once, for the first that asks. */
export class AskedDelivery {
  /** The parsed body. */
  readonly body: unknown;
  readonly #facts: DeliveryFacts;
  #received: ReceivedDelivery | undefined;

  constructor(facts: DeliveryFacts, body: unknown) {
    this.#facts = facts;
    this.body = body;
  }

  /** The delivery for rules that get its event by this name. */
  calledBy(event: string | null): AskedDelivery {
    return event === this.#facts.event ? this : new AskedDelivery({ ...this.#facts, event }, this.body);
  }

  get received(): ReceivedDelivery {
    this.#received ??= receivedDelivery(this.#facts, this.body);
    return this.#received;
  }
}

/** What a JSON pointer into the body, or a function, gives for a delivery. */
export function ruleValue(
  rule: string | ((delivery: ReceivedDelivery) => unknown),
  name: string,
): (asked: AskedDelivery) => unknown {
  if (typeof rule === 'function') return ({ received }) => synchronous(rule(received), name);
  const pointer = parsePointer(rule) ?? [];
  return ({ body }) => valueAt(body, pointer);
}

/** A promise would be true, and one key for all deliveries. */
function synchronous(result: unknown, name: string): unknown {
  if (!isThenable(result)) return result;
  // Nobody awaits it.
  result.then(undefined, () => {});
  throw new TypeError(`${name} returned a promise; it has to be synchronous`);
}

/**
 * Gives a number; undefined for a delivery to which the rule does not apply. `onInvalid` is told of a value that makes no
 * sense, which is taken for none.
 */
export type NumberRule = (
  asked: AskedDelivery,
  onInvalid: (problem: TypeError) => void,
) => number | undefined;

/** The priority of a delivery, from 0 to MAX_PRIORITY. */
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

/** The time before which a delivery is not due, in milliseconds since the epoch. */
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
  // Not before the time: up to a whole millisecond. A date has an end of its own.
  const ms = new Date(Math.ceil(Number(time))).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}
