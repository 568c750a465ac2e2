import type { DeliveryHeaders } from './delivery-headers.ts';

/** A webhook delivery as its handler gets it. */
export interface Delivery {
  /** Stable and globally unique (UUID version 7): a handler can make its own effects idempotent with it. */
  readonly id: string;
  /** The name of the signed source that sent it; empty for /webhook itself. */
  readonly source: string;
  /** The kind of event (contract 2.5), by the name that its handler has. */
  readonly event: string;
  /** The kind of event by the sender's own name; the same as `event`, unless the source renames it. */
  readonly senderEvent: string;
  /** The event's own payload, not validated (contract 2.5). */
  readonly data: unknown;
  /** The whole parsed body, with what the sender says around the payload: an id, an account, a time. */
  readonly body: unknown;
  readonly receivedAt: Date;
  /** The headers of the request that its source keeps, by name in lower case. */
  readonly headers: DeliveryHeaders;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

const HANDLER_PREFIX = 'handler:';

/** The target of the handler with a name. */
export function handlerTargetName(event: string): string {
  return `${HANDLER_PREFIX}${event}`;
}

/** Whether a target is a handler; the others are addresses. */
export function isHandlerTarget(target: string): boolean {
  return target.startsWith(HANDLER_PREFIX);
}

/** A job to create: one target for one delivery. */
export interface NewJob {
  /** The name of the handler or forward address. */
  readonly target: string;
  /** Jobs of one target with the same key run one after the other; null: in any order. */
  readonly orderKey: string | null;
  /** It is not due before this time, in milliseconds since the epoch; default at once. */
  readonly runAt?: number | undefined;
  /** From 0 up to MAX_PRIORITY; default 0. */
  readonly priority?: number | undefined;
}

/** A delivery as it is stored. */
export interface StoredDelivery {
  readonly id: string;
  readonly source: string;
  /** The name that the event has here; null when the request names none. */
  readonly event: string | null;
  /** The sender's own name of the event where its source renames it; null or absent where that is `event`. */
  readonly senderEvent?: string | null | undefined;
  /** JSON pointer (RFC 6901) to the handler's data in the body. */
  readonly dataPointer: string;
  readonly contentType: string | null;
  /** The kept headers of the request as a JSON object, by name in lower case; null or absent without any. */
  readonly headers?: string | null | undefined;
  /** Where its request stood in a trace, as `storedTrace` writes it; null or absent without one. */
  readonly trace?: string | null | undefined;
  /** The request body, byte for byte. */
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
}

/** The names of an event: Portico's, and the sender's own where that is another one. */
export type EventNames = Pick<StoredDelivery, 'event' | 'senderEvent'>;

/** Whether an event goes by a name, be it Portico's or the sender's own. */
export function isCalled({ event, senderEvent }: EventNames, name: string): boolean {
  return event === name || senderEvent === name;
}

/** Senders choose the names of events; the log cuts longer ones, in characters. */
const MAX_LOGGED_NAME = 200;

/** The names of an event as fields of a log entry. */
export function eventFields({ event, senderEvent }: EventNames): Readonly<Record<string, string | null>> {
  return {
    event: event?.slice(0, MAX_LOGGED_NAME) ?? null,
    ...(senderEvent != null && { senderEvent: senderEvent.slice(0, MAX_LOGGED_NAME) }),
  };
}

/** A delivery to store. */
export interface NewDelivery extends StoredDelivery {
  /** The sender's own id of the delivery, which identifies duplicates; null: it has none. */
  readonly dedupKey: string | null;
  /** Empty when nothing handles it: it then waits for a replay. */
  readonly jobs: readonly NewJob[];
}

/** A job that this process has claimed: leased until its lease ends. */
export interface ClaimedJob {
  /** The number of the job in the database. */
  readonly job: number;
  readonly target: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** How often its process has died; with the attempt and the owner it fences off a claim whose lease has ended. */
  readonly deaths: number;
  /** Whether it has an order key. */
  readonly ordered: boolean;
  readonly delivery: StoredDelivery;
}
