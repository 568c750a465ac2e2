import { randomFillSync } from 'node:crypto';
import { parsePointer, valueAt } from '../core/json.ts';

/** A webhook delivery as passed to its handler. */
export interface Delivery {
  /** Stable and globally unique (UUID version 7), so a handler can use it to make its effects idempotent. */
  readonly id: string;
  /** The name of the signed source; empty for /webhook itself. */
  readonly source: string;
  /** The event type (CONTRACT.md#webhook-body), under the name of the handler. */
  readonly event: string;
  /** The event type under the sender's name; the same as `event` unless the source renames it. */
  readonly senderEvent: string;
  /** The event's payload, not validated (CONTRACT.md#webhook-body). */
  readonly data: unknown;
  /** The whole parsed body, including the sender's envelope around the payload: an id, an account, a time. */
  readonly body: unknown;
  readonly receivedAt: Date;
  /** The request headers that the source keeps, by lower-case name. */
  readonly headers: DeliveryHeaders;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** Headers by lower-case name. */
export type DeliveryHeaders = Readonly<Record<string, string>>;

const HANDLER_PREFIX = 'handler:';

/** The target name of an event's handler. */
export function handlerTargetName(event: string): string {
  return `${HANDLER_PREFIX}${event}`;
}

/** Whether a target is a handler; all other targets are forward addresses. */
export function isHandlerTarget(target: string): boolean {
  return target.startsWith(HANDLER_PREFIX);
}

/** A job to create: one target for one delivery. */
export interface NewJob {
  /** The name of the handler or forward address. */
  readonly target: string;
  /** Jobs of one target with the same key run one after the other; null: no order. */
  readonly orderKey: string | null;
  /** The job is not due before this time, in milliseconds since the epoch. Default: due at once. */
  readonly runAt?: number | undefined;
  /** From 0 to MAX_PRIORITY. Default: 0. */
  readonly priority?: number | undefined;
}

/** A delivery as it is stored. */
export interface StoredDelivery {
  readonly id: string;
  readonly source: string;
  /** The event name in Portico; null if the request names none. */
  readonly event: string | null;
  /** The sender's event name if the source renames it; null or absent if it is the same as `event`. */
  readonly senderEvent?: string | null | undefined;
  /** JSON pointer (RFC 6901) to the handler's data within the body. */
  readonly dataPointer: string;
  readonly contentType: string | null;
  /** The kept request headers as a JSON object, by lower-case name; null or absent if there are none. */
  readonly headers?: string | null | undefined;
  /** The trace context of the request, as `storedTrace` writes it; null or absent if there is none. */
  readonly trace?: string | null | undefined;
  /** The request body, byte for byte. */
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
}

/** The names of an event: Portico's, and the sender's if it differs. */
export type EventNames = Pick<StoredDelivery, 'event' | 'senderEvent'>;

/** Whether either name of an event is `name`. */
export function isCalled({ event, senderEvent }: EventNames, name: string): boolean {
  return event === name || senderEvent === name;
}

/** Longer event names are cut in the log, in characters: senders choose them. */
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
  /** The sender's id of the delivery, which identifies duplicates; null if it has none. */
  readonly dedupKey: string | null;
  /** Empty if no target wants the delivery; it is then unhandled until it is replayed. */
  readonly jobs: readonly NewJob[];
  /**
   * The tenant whose endpoints the jobs are for, and the version of these endpoints. The delivery is stored only if the
   * tenant has that version: otherwise the append rejects with TenantChangedError. A delivery with the same key revives
   * dead jobs only if its id ends with the digest, if there is one.
   */
  readonly tenant?: { readonly name: string; readonly version: number; readonly digest?: string | undefined };
}

/** The place of the digest of a request in the id of its event: the last characters, which are random otherwise. */
export const DIGEST_AT = 24;

/** The endpoints of the tenant have changed since the jobs of an event were decided; nothing was stored. */
export class TenantChangedError extends Error {
  override readonly name = 'TenantChangedError';
  readonly code = 'TENANT_CHANGED';

  constructor() {
    super('the endpoints of the tenant have changed');
  }
}

/** A job that this process has claimed under a lease. */
export interface ClaimedJob {
  /** The number of the job in the database. */
  readonly job: number;
  readonly target: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** How often its process crashed. With attempt and owner it identifies the claim. */
  readonly crashes: number;
  /** Whether it has an order key. */
  readonly ordered: boolean;
  readonly delivery: StoredDelivery;
}

/** Random bytes are generated for this many ids at a time. */
const POOL = 1024;
const BYTES = 8;
const COUNTER_END = 0x1000;
/** The counter of a new millisecond starts at a random value in its lower half, so it can be incremented. */
const START_MASK = 0x7ff;

/**
 * Generates delivery ids: UUIDs of version 7 with a counter after the timestamp (RFC 9562 6.2, method 1). Ids
 * strictly increase, so their index grows only at its end; random ids would make each batch touch many pages.
 */
export class DeliveryIds {
  readonly #random = Buffer.alloc(POOL * BYTES);
  #hex = '';
  #used = POOL;
  #time = 0;
  #counter = 0;
  /** The timestamp and the version: the first characters of an id. */
  #prefix = '';

  /** The id of a delivery received at `now`, in milliseconds since the epoch. */
  next(now: number): string {
    if (this.#used === POOL) {
      this.#hex = randomFillSync(this.#random).toString('hex');
      this.#used = 0;
    }
    const byte = this.#used++ * BYTES;
    this.#counter++;
    // A clock that was set back is ignored; a full millisecond continues in the next one.
    if (now > this.#time || this.#counter === COUNTER_END)
      this.#startMillisecond(Math.max(now, this.#time + 1), byte);
    const counter = (COUNTER_END | this.#counter).toString(16).slice(1);
    // The two variant bits precede the random ones.
    const variant = ((this.#random[byte] ?? 0) & 0x3f) | 0x80;
    const at = byte * 2;
    return `${this.#prefix}${counter}-${variant.toString(16)}${this.#hex.slice(at + 2, at + 4)}-${this.#hex.slice(at + 4, at + 16)}`;
  }

  #startMillisecond(time: number, byte: number): void {
    this.#time = time;
    // The id contains these bits anyway, so the counter reveals nothing more.
    this.#counter = this.#random.readUInt16LE(byte) & START_MASK;
    const hex = time.toString(16).padStart(12, '0');
    this.#prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
  }
}

// A crash: the process of a running attempt ended, or stalled until its lease ran out. It does not count as
// an attempt.

/** Jobs with this many crashes are quarantined: they run alone in their process. */
export const QUARANTINE_CRASHES = 2;

/** The highest priority of a delivery. */
export const MAX_PRIORITY = 100;

/**
 * The value of one priority level, in milliseconds: a job is claimed as if it had become due this much
 * earlier for each level. A job that has waited longer than that comes first again, so low priorities are
 * never starved.
 */
export const PRIORITY_LEVEL = 86_400_000;

/** Milliseconds per unit, largest first. */
const UNITS = [
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

const AGO = /^(\d{1,9})([smhdw])$/;
const ISO =
  /^(\d{4}-\d{2}-)(\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?$/;

/** The syntax of a point in time, for error messages. */
export const MOMENT = 'an ISO 8601 time like 2026-01-31T14:00Z, or how long ago like 15m, 2h or 3d';

/** Parses an ISO 8601 time to milliseconds; without a zone it is in `zone`, by default local. */
export function parseIsoTime(text: string, zone = ''): number | undefined {
  const [, month = '', day = '', time = '00:00', given = zone] = ISO.exec(text) ?? [];
  const moment = Date.parse(`${month}${day}T${time}${given}`);
  // Date.parse reads 31 February as a day in March.
  const real = new Date(Date.parse(`${month}${day}T00:00Z`)).getUTCDate() === Number(day);
  return Number.isNaN(moment) || !real ? undefined : moment;
}

/** Parses a time for `parseIsoTime`, or an age before `now` in s, m, h, d or w, to milliseconds. */
export function parseMoment(text: string, now: number): number | undefined {
  const [, count, unit] = AGO.exec(text) ?? [];
  for (const [name, length] of UNITS) if (name === unit) return now - Number(count) * length;
  return parseIsoTime(text);
}

/** Formats milliseconds as whole units of the largest that fits, such as `15m`. */
export function formatSpan(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms >= length) ?? (['s', 1_000] as const);
  return `${Math.max(0, Math.floor(ms / length))}${unit}`;
}

/** A delivery as passed to the functions of rules and transformations. */
export interface ReceivedDelivery {
  readonly id: string;
  /** The name of the signed source; empty for /webhook itself. */
  readonly source: string;
  /** The event type, for a handler's rules under the handler's name; null if there is none. */
  readonly event: string | null;
  /** The event type under the sender's name; the same as `event` unless the source renames it. */
  readonly senderEvent: string | null;
  /** The parsed body, not validated. */
  readonly body: unknown;
  /** The part of the body that handlers get as `data`. */
  readonly data: unknown;
  readonly receivedAt: Date;
}

/**
 * Returns whether a handler or forward address wants a delivery. It must be synchronous and return the same
 * result for the same delivery, because it is called again after an error.
 */
export type DeliveryPredicate = (delivery: ReceivedDelivery) => boolean | null | undefined;

/** Returns the priority of a delivery, from 0 to 100; null and undefined mean 0. Synchronous. */
export type DeliveryPriority = (delivery: ReceivedDelivery) => number | null | undefined;

/**
 * Returns the earliest time at which a delivery is handled: a Date, milliseconds since the epoch or ISO 8601
 * text. Null and undefined mean at once. Synchronous, like a filter.
 */
export type DeliveryTime = (delivery: ReceivedDelivery) => Date | number | string | null | undefined;

/** Returns the order key of a delivery, a JSON value; null and undefined mean no order. Synchronous. */
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

/** A stored delivery's fields that rules and plans need besides the body. */
export type DeliveryFacts = Pick<
  StoredDelivery,
  'id' | 'source' | 'event' | 'senderEvent' | 'dataPointer' | 'receivedAt'
>;

/** Builds the value for rules from a stored delivery and its parsed body. */
export function receivedDelivery(
  { id, source, event, senderEvent, dataPointer, receivedAt }: DeliveryFacts,
  body: unknown,
): ReceivedDelivery {
  const data = valueAt(body, parsePointer(dataPointer) ?? []);
  const names = { event, senderEvent: senderEvent ?? event };
  return { id, source, ...names, body, data, receivedAt: new Date(receivedAt) };
}

/** Writes one log entry: a message, or fields and a message. */
interface HandlerLogMethod {
  (message: string): void;
  (fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** A handler's log; every entry has the delivery's id and event. */
export interface HandlerLog {
  readonly debug: HandlerLogMethod;
  readonly info: HandlerLogMethod;
  readonly warn: HandlerLogMethod;
  readonly error: HandlerLogMethod;
}

/** The second argument of a handler. */
export interface HandlerContext {
  /**
   * Aborts at the timeout, when the process stops, and when the lease is lost. In the last case another
   * process may handle the delivery, and the reason has the code `LEASE_LOST`.
   */
  readonly signal: AbortSignal;
  readonly log: HandlerLog;
  /**
   * Headers that continue the sender's trace in calls that the handler makes: `traceparent` and possibly
   * `tracestate`. Empty if the delivery came without a trace.
   */
  readonly trace: Readonly<Record<string, string>>;
}

/**
 * Handles one delivery. The attempt succeeds if it returns or resolves, and is retried if it throws or
 * rejects. A handler may get the same delivery more than once, so its effects should be idempotent by
 * `delivery.id`.
 */
export type DeliveryHandler = (delivery: Delivery, context: HandlerContext) => void | Promise<void>;

// Sources of deliveries that no sender sent. The names of configured sources cannot contain a colon.

const OWN = 'portico:';

export const OWN_SOURCES = {
  schedule: `${OWN}schedule`,
  alert: `${OWN}alert`,
  users: `${OWN}users`,
  changes: `${OWN}changes`,
  enqueue: `${OWN}enqueue`,
  sending: `${OWN}sending`,
} as const;

/** Whether no HTTP request brought a delivery, but the service itself or a program through the database. */
export function isOwnSource(source: string): boolean {
  return source.startsWith(OWN);
}

/** The source of the events that are published to a tenant is `tenant:<name>`. */
export const TENANT_SOURCE = 'tenant:';

/** Whether a delivery is an event for the endpoints of a tenant. */
export function isTenantSource(source: string): boolean {
  return source.startsWith(TENANT_SOURCE);
}

/** The targets of endpoints are `endpoint:<tenant>/<id>`; the names of tenants have no slash. */
export const ENDPOINT_PREFIX = 'endpoint:';
