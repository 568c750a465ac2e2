import { randomFillSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isFormType, parseFormBody, parseJsonBody, parseJsonText } from '@portico/transport';
import { parsePointer, valueAt } from '../core/json.ts';

/** A webhook delivery as its handler gets it. */
export interface Delivery {
  /** Stable and globally unique (UUID version 7): a handler can make its own effects idempotent with it. */
  readonly id: string;
  /** The name of the signed source that sent it; empty for /webhook itself. */
  readonly source: string;
  /** The kind of event (CONTRACT.md#webhook-body), by the name that its handler has. */
  readonly event: string;
  /** The kind of event by the sender's own name; the same as `event`, unless the source renames it. */
  readonly senderEvent: string;
  /** The event's own payload, not validated (CONTRACT.md#webhook-body). */
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
  readonly crashes: number;
  /** Whether it has an order key. */
  readonly ordered: boolean;
  readonly delivery: StoredDelivery;
}

/** Random bytes are generated for this many ids at a time. */
const POOL = 1024;
const BYTES = 8;
const COUNTER_END = 0x1000;
/** The counter of a new millisecond starts at a random value in the lower half, which leaves room for increments. */
const START_MASK = 0x7ff;

/**
 * Generates delivery ids: UUIDs of version 7 with a counter after the timestamp (RFC 9562 6.2, method 1). Ids increase
 * strictly, so an index of them grows only at its end; with random bits a batch would touch many pages.
 */
export class DeliveryIds {
  readonly #random = Buffer.alloc(POOL * BYTES);
  #hex = '';
  #used = POOL;
  #time = 0;
  #counter = 0;
  /** The timestamp and the version, as they start an id. */
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

/** Headers by name in lower case. */
export type DeliveryHeaders = Readonly<Record<string, string>>;

/** Maximum size of the kept headers of a delivery, names and values together, in bytes. */
export const MAX_HEADER_BYTES = 4_096;

/**
 * Those headers of a request that are kept, in the order of `names`, as JSON text; null without any. What does not fit
 * `MAX_HEADER_BYTES` any more is left out whole: half a value would be a wrong one.
 */
export function keptHeaders(names: readonly string[], headers: Readonly<IncomingHttpHeaders>): string | null {
  const kept: [string, string][] = [];
  let left = MAX_HEADER_BYTES;
  for (const name of names) {
    const value = headers[name];
    if (typeof value !== 'string') continue;
    // Node reads header bytes as Latin-1: one character each.
    const size = name.length + value.length;
    if (size > left) continue;
    left -= size;
    kept.push([name, value]);
  }
  return kept.length === 0 ? null : JSON.stringify(Object.fromEntries(kept));
}

/** The headers of a stored delivery. */
export function headersOf({ headers = null }: Pick<StoredDelivery, 'headers'>): DeliveryHeaders {
  return headers === null ? {} : (JSON.parse(headers) as DeliveryHeaders);
}

const WHITESPACE: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20]);

/**
 * Parses the body of a delivery. It depends on the stored delivery alone, so every attempt gets the same value.
 * /webhook itself accepts JSON with any content type (CONTRACT.md#webhook-receipt). Signed sources may also send forms: the JSON in
 * the field `payload`, as GitHub and Slack send it, or the fields as an object. Throws an HttpProblem with status 400.
 */
export function parseDeliveryBody({
  source,
  contentType,
  body,
}: Pick<StoredDelivery, 'source' | 'contentType' | 'body'>): unknown {
  if (source === '' || !isFormType(contentType) || startsLikeJson(body)) return parseJsonBody(body);
  const fields = parseFormBody(body);
  const { payload } = fields;
  return typeof payload === 'string' && /^\s*\{/.test(payload) ? parseJsonText(payload) : fields;
}

/** Some clients, curl among them, label every body without an explicit type as a form. */
function startsLikeJson(body: Uint8Array): boolean {
  const first = body.find((byte) => !WHITESPACE.has(byte));
  return first === 0x7b || first === 0x5b;
}

// A crash: the process of a running attempt ended, or stopped until its lease ran out. It does not count as an attempt.

/** Jobs with this many crashes are quarantined: a process runs one of them at a time, so a fatal job takes no other with it. */
export const QUARANTINE_CRASHES = 2;
/** A job with this many crashes is dead. */
export const MAX_CRASHES = 5;

/** The highest priority of a delivery. */
export const MAX_PRIORITY = 100;

/**
 * What a level of priority is worth, in milliseconds: a job is claimed as if it had been due so much earlier. So what has
 * waited for longer than that comes first again, and nothing waits for ever.
 */
export const PRIORITY_LEVEL = 86_400_000;

/** Milliseconds per unit, the largest first. */
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

/** The syntax of a moment, for messages. */
export const MOMENT = 'an ISO 8601 time like 2026-01-31T14:00Z, or how long ago like 15m, 2h or 3d';

/**
 * Parses an ISO 8601 time to milliseconds since the epoch; a time without a zone is in `zone`, by default the local one.
 * Returns undefined for anything else.
 */
export function parseIsoTime(text: string, zone = ''): number | undefined {
  const [, month = '', day = '', time = '00:00', given = zone] = ISO.exec(text) ?? [];
  const moment = Date.parse(`${month}${day}T${time}${given}`);
  // Date.parse accepts 31 February as a day in March.
  const real = new Date(Date.parse(`${month}${day}T00:00Z`)).getUTCDate() === Number(day);
  return Number.isNaN(moment) || !real ? undefined : moment;
}

/**
 * Parses a moment to milliseconds since the epoch: ISO 8601, in local time without a zone, or a duration before `now`
 * in s, m, h, d or w. Returns undefined for anything else.
 */
export function parseMoment(text: string, now: number): number | undefined {
  const [, count, unit] = AGO.exec(text) ?? [];
  for (const [name, length] of UNITS) if (name === unit) return now - Number(count) * length;
  return parseIsoTime(text);
}

/** Formats a duration in whole units of the largest that fits, such as `15m`; `parseMoment` reads it. `ms` is in milliseconds. */
export function formatSpan(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms >= length) ?? (['s', 1_000] as const);
  return `${Math.max(0, Math.floor(ms / length))}${unit}`;
}

/** A delivery as the functions of rules (filters, orders, priorities, times) and transformations get it. */
export interface ReceivedDelivery {
  readonly id: string;
  /** The name of the signed source that sent it; empty for /webhook itself. */
  readonly source: string;
  /**
   * The kind of event; null when the request names none. The rules of a handler get it by the name that the handler has,
   * a forward address by the name that the event has in Portico.
   */
  readonly event: string | null;
  /** The kind of event by the sender's own name; the same as `event`, unless the source renames it. */
  readonly senderEvent: string | null;
  /** What the body says, not validated. */
  readonly body: unknown;
  /** The part of the body that handlers get as their data. */
  readonly data: unknown;
  readonly receivedAt: Date;
}

/** What is known of a delivery beside its body. */
export type DeliveryFacts = Pick<
  StoredDelivery,
  'id' | 'source' | 'event' | 'senderEvent' | 'dataPointer' | 'receivedAt'
>;

/** `body` is the parsed one. */
export function receivedDelivery(
  { id, source, event, senderEvent, dataPointer, receivedAt }: DeliveryFacts,
  body: unknown,
): ReceivedDelivery {
  const data = valueAt(body, parsePointer(dataPointer) ?? []);
  const names = { event, senderEvent: senderEvent ?? event };
  return { id, source, ...names, body, data, receivedAt: new Date(receivedAt) };
}

/** Writes one log entry: a message, or fields and a message. */
export interface HandlerLogMethod {
  (message: string): void;
  (fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** The log of one delivery; every entry has the delivery's id and event. */
export interface HandlerLog {
  readonly debug: HandlerLogMethod;
  readonly info: HandlerLogMethod;
  readonly warn: HandlerLogMethod;
  readonly error: HandlerLogMethod;
}

/** What a handler gets beside its delivery. */
export interface HandlerContext {
  /**
   * Aborts at the timeout, when the process stops, and when the lease of the delivery is lost: then another process may
   * handle it, and the reason has the code `LEASE_LOST`.
   */
  readonly signal: AbortSignal;
  readonly log: HandlerLog;
  /**
   * The headers that continue the trace of the sender, `traceparent` and perhaps `tracestate`, for what the handler
   * calls; none when the delivery came without a trace.
   */
  readonly trace: Readonly<Record<string, string>>;
}

/**
 * Handles one delivery. It has succeeded when it returns or resolves; when it throws or rejects, it is retried.
 * It may get the same delivery more than once, so its effects should be idempotent by `delivery.id`.
 */
export type DeliveryHandler = (delivery: Delivery, context: HandlerContext) => void | Promise<void>;

// The sources of deliveries that no sender sent. A configured source has no colon in its name.

const OWN = 'portico:';

export const SCHEDULE_SOURCE = `${OWN}schedule`;
export const ALERT_SOURCE = `${OWN}alert`;
export const USERS_SOURCE = `${OWN}users`;
export const ENQUEUE_SOURCE = `${OWN}enqueue`;

/** Whether a delivery came from the service or a program on its database, and not over HTTP. */
export function isOwnSource(source: string): boolean {
  return source.startsWith(OWN);
}
