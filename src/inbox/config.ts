import * as v from 'valibot';
import {
  countField,
  functionField,
  type Given,
  itemsOf,
  namedOf,
  pointerField,
  readObject,
  textField,
  toggleField,
  type Written,
  wholeField,
  wholeNumberField,
} from '../config/schema/fields.ts';
import { secretsSchema } from '../config/secrets.ts';
import { isRecord, parsePointer } from '../core/json.ts';
import {
  type DeliveryHandler,
  type DeliveryKey,
  type DeliveryPredicate,
  type DeliveryPriority,
  type DeliveryTime,
  type DeliveryTransform,
  MAX_PRIORITY,
} from './delivery.ts';

const CONDITION_SHAPE = 'must be a function, or a condition like { pointer: "/action", is: "opened" }';
const CONDITION_POINTER = 'must be a JSON pointer such as /action';
const VALUE = 'must be a text, a number, true, false or null';
const VALUES = 'must be an array of texts, numbers, true, false or null, and not empty';
const NUMBER = 'must be a number';

const value = v.union([v.string(), v.pipe(v.number(), v.finite()), v.boolean(), v.null()], VALUE);
const number = v.pipe(v.number(NUMBER), v.finite(NUMBER));

const testSchema = v.object(
  {
    /** JSON pointer (RFC 6901) into the body. */
    pointer: pointerField(CONDITION_POINTER),
    is: v.optional(value),
    isNot: v.optional(value),
    in: v.optional(wholeField(v.pipe(v.array(value), v.minLength(1)), VALUES)),
    includes: v.optional(value),
    exists: v.optional(toggleField),
    startsWith: v.optional(v.string('must be a text')),
    above: v.optional(number),
    below: v.optional(number),
  },
  CONDITION_SHAPE,
);

const LIST = 'must be an array of conditions, and not empty';
const combinations = {
  all: v.object({ all: v.optional(v.unknown()) }, CONDITION_SHAPE),
  any: v.object({ any: v.optional(v.unknown()) }, CONDITION_SHAPE),
  not: v.object({ not: v.optional(v.unknown()) }, CONDITION_SHAPE),
} as const;

/** Tests of the value at a JSON pointer into the body; all of them must hold. */
export type PointerCondition = Written<typeof testSchema>;

/** A condition on the body of a delivery, as data. */
export type Condition =
  | PointerCondition
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition };

/** Which deliveries a handler or forward address receives. */
export type DeliveryFilter = Condition | DeliveryPredicate;

/** The filter field of a handler or forward address; `checkFilter` validates its content. */
const filterField = v.custom<DeliveryFilter>(() => true);

/** Checks the filter `when` of a handler or forward address. Appends one line per problem to `problems`. */
export function checkFilter(owner: Given, problems: string[]): void {
  const filter = isRecord(owner.value) ? owner.value.when : undefined;
  if (filter === undefined || typeof filter === 'function') return;
  checkCondition({ value: filter, path: `${owner.path}.when` }, problems);
}

function checkCondition(given: Given, problems: string[]): void {
  const written = isRecord(given.value) ? given.value : {};
  const word = (['all', 'any', 'not'] as const).find((key) => written[key] !== undefined);
  if (word === undefined) checkTests(given, problems);
  else checkCombination(word, { ...given, value: written }, problems);
}

function checkCombination(
  word: keyof typeof combinations,
  given: Given & { readonly value: Readonly<Record<string, unknown>> },
  problems: string[],
): void {
  readObject(combinations[word], given, problems);
  const inner = { value: given.value[word], path: `${given.path}.${word}` };
  if (word === 'not') checkCondition(inner, problems);
  else if (!Array.isArray(inner.value) || inner.value.length === 0) problems.push(`${inner.path} ${LIST}`);
  else for (const item of itemsOf(inner, problems)) checkCondition(item, problems);
}

function checkTests(given: Given, problems: string[]): void {
  const read = readObject(testSchema, given, problems);
  if (read === undefined || Object.keys(read).length > 1) return;
  const tests = Object.keys(testSchema.entries).filter((key) => key !== 'pointer');
  problems.push(`${given.path} must have one of ${tests.join(', ')}`);
}

/** Whether a value is a JSON pointer (RFC 6901), or a function. */
const isRule = (value: unknown) =>
  typeof value === 'function' || (typeof value === 'string' && parsePointer(value) !== undefined);
const isPriority = (value: unknown) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_PRIORITY;

/**
 * The key of an order: deliveries with the same key are handled or forwarded one at a time, in order of
 * arrival. A JSON pointer into the body, or a function.
 */
const orderField = v.custom<string | DeliveryKey>(
  isRule,
  'must be a JSON pointer such as /data/id, or a function',
);

/** The priority of deliveries: an integer for all of them, a JSON pointer into the body, or a function. */
const priorityField = v.custom<number | string | DeliveryPriority>(
  (value) => isRule(value) || isPriority(value),
  `must be a whole number from 0 to ${MAX_PRIORITY}, a JSON pointer such as /data/priority, or a function`,
);

/** The earliest time to handle or forward a delivery: a JSON pointer into the body, or a function. */
const runAtField = v.custom<string | DeliveryTime>(
  isRule,
  'must be a JSON pointer such as /data/runAt, or a function',
);

const handlerSchema = v.object(
  {
    handler: functionField<DeliveryHandler>(),
    /** Maximum concurrent deliveries. */
    concurrency: v.optional(countField),
    /** Timeout of an attempt, in milliseconds. */
    timeout: v.optional(countField),
    /** Maximum attempts before a delivery is dead. */
    attempts: v.optional(countField),
    /** Which deliveries of the event it handles. Default: all. */
    when: v.optional(filterField),
    /** Whether it runs in a worker thread; only handlers of a configuration module can. */
    isolate: v.optional(toggleField),
    order: v.optional(orderField),
    priority: v.optional(priorityField),
    runAt: v.optional(runAtField),
  },
  'must be a function, or an object with a function as its "handler"',
);

/** A handler with its own limits; they default to the options of the webhook door. */
export type HandlerSpec = Written<typeof handlerSchema>;

/** Reads `webhook.handlers`: for each event a function, or an object with a function and its limits. */
export function readHandlers(given: Given, problems: string[]): ReadonlyMap<string, HandlerSpec> {
  const read = namedOf(given, 'functions', problems).flatMap((entry) => {
    const value = typeof entry.value === 'function' ? { handler: entry.value } : entry.value;
    const spec = readObject(handlerSchema, { ...entry, value }, problems);
    checkFilter(entry, problems);
    return spec === undefined ? [] : [[entry.name, spec] as const];
  });
  return new Map(read);
}

const RATE = 'must be like "10/s", "100/m", "500/h" or { limit: "10/s", burst: 20 }';
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
/**
 * Without its own burst, a rate lets as many attempts start at once as it allows in this time, in
 * milliseconds.
 */
const BURST_TIME = 100;

const limit = v.pipe(v.string(), v.regex(/^[1-9]\d{0,6}\/[smh]$/));

/** How many attempts may start. */
interface Rate {
  readonly perMs: number;
  /** How many may start at once after a pause. */
  readonly burst: number;
}

/** A rate such as `10/s`; with a burst as an object. */
export const rateField = v.pipe(
  wholeField(v.union([limit, v.strictObject({ limit, burst: v.optional(countField) })]), RATE),
  v.transform((given): Rate => {
    const { limit, burst = undefined } = typeof given === 'string' ? { limit: given } : given;
    const [count = '', unit = ''] = limit.split('/');
    const perMs = Number(count) / (UNITS[unit] ?? 1_000);
    return { perMs, burst: burst ?? Math.max(1, Math.floor(perMs * BURST_TIME)) };
  }),
);

/** The content that replaces the received body, as data. */
export interface TransformData {
  /**
   * JSON pointer (RFC 6901) to the part of the body to send, or an object of pointers: the result is an
   * object of the values that they point to, without members whose pointer points to nothing.
   */
  readonly body?: string | Readonly<Record<string, string>>;
  /**
   * Headers by name. `{id}`, `{event}`, `{senderEvent}`, `{source}` and `{/pointer}` are replaced by the
   * delivery's values. A header is omitted if one of them has no value.
   */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The transformation of a forward address; `checkTransform` validates its content. */
const transformField = v.custom<DeliveryTransform | TransformData>(
  (value) => typeof value === 'function' || isRecord(value),
  'must be a function, or an object like { body: "/data", headers: { "x-event": "{event}" } }',
);

const MINUTE = 60_000;
const MONTH = 2_678_400_000;

export const scheduleSchema = v.object(
  {
    /** `minute hour day month weekday`; with six fields, seconds come first. */
    cron: v.string('must be a cron expression such as 0 3 * * *'),
    /** The time zone of the expression, such as Europe/Berlin. Default: UTC. */
    timezone: v.optional(v.string('must be the name of a time zone'), 'UTC'),
    /** The event of its deliveries. Default: the name of the schedule. */
    event: v.optional(textField(/./, 'must be the name of an event')),
    /** Data for the handler; Portico adds `schedule` and `plannedAt`. */
    data: v.optional(
      v.custom<Readonly<Record<string, unknown>>>(isRecord, 'must be an object of JSON values'),
      {},
    ),
    /** How late a missed delivery may still be stored, in milliseconds. Default: an hour. */
    grace: v.optional(
      wholeNumberField(MINUTE, MONTH, `must be a whole number from ${MINUTE} to ${MONTH} (milliseconds)`),
      60 * MINUTE,
    ),
  },
  'must be a cron expression, or an object with one as its "cron"',
);

/** A delivery that Portico stores repeatedly, on a schedule. */
type ScheduleConfig = Written<typeof scheduleSchema>;

/** The schedules by name. */
export type SchedulesConfig = Readonly<Record<string, string | ScheduleConfig>>;

const URL_EXPECTED = 'must be an http or https URL without a user name in it';

const CHANGES = ['created', 'updated', 'deleted'] as const;

const CHANGES_EXPECTED = `must be true, or an array of ${CHANGES.map((change) => `"${change}"`).join(', ')}`;

/** The changes of users to forward; `true` for all. */
const changesField = v.pipe(
  wholeField(v.union([v.boolean(), v.array(v.picklist(CHANGES))]), CHANGES_EXPECTED),
  v.transform((given): readonly (typeof CHANGES)[number][] => {
    if (typeof given === 'boolean') return given ? CHANGES : [];
    return given;
  }),
);

/** The changes of relations to forward, by the relation's name. */
const relationChangesField = wholeField(
  v.record(v.string(), changesField),
  `must be an object of relations such as { books: ["created"] }; each ${CHANGES_EXPECTED}`,
);

export const forwardSchema = v.object(
  {
    url: v.pipe(
      v.string(URL_EXPECTED),
      v.check(isHttpUrl, URL_EXPECTED),
      v.transform((text) => new URL(text)),
    ),
    /** Standard Webhooks secrets to sign with. Default: none, so requests are not signed. */
    secrets: v.optional(secretsSchema),
    /** The events to forward. Default: all, or none if `users` or `changes` is set. */
    events: v.optional(wholeField(v.array(v.string()), 'must be an array of event names')),
    /** The changes of users to send; `true` for all. Default: none. */
    users: v.optional(changesField),
    /** The changes of relations to send, by relation; `true` for all of one. Default: none. */
    changes: v.optional(relationChangesField),
    /** Which deliveries of these events to forward. Default: all. */
    when: v.optional(filterField),
    /** The content to send instead of the received body. Default: that body. */
    transform: v.optional(transformField),
    /** How many attempts each process may start in a time. Default: no limit. */
    rate: v.optional(rateField),
    order: v.optional(orderField),
    priority: v.optional(priorityField),
    runAt: v.optional(runAtField),
    /** Whether the address may be in a private network. Default: false. */
    allowPrivate: v.optional(toggleField, false),
    concurrency: v.optional(countField),
    /** Timeout of an attempt, in milliseconds. */
    timeout: v.optional(countField),
    /** Maximum attempts before a delivery is dead. */
    attempts: v.optional(countField),
  },
  'must be a URL, or an object with a url',
);

/** An address that deliveries are forwarded to. */
export type ForwardConfig = Written<typeof forwardSchema>;

/** The addresses by name. */
export type ForwardsConfig = Readonly<Record<string, string | ForwardConfig>>;

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

const DAY = 86_400_000;
const { url, secrets, timeout, attempts } = forwardSchema.entries;
const allowPrivate = v.optional(toggleField);

export const deadAlertSchema = v.object(
  {
    /** The address that receives alerts, in the same way as forwarded deliveries. Default: none. */
    url: v.optional(url),
    secrets,
    allowPrivate,
    timeout,
    attempts,
    /** Minimum time between two alerts about one target, in milliseconds. Default: 15 minutes. */
    interval: v.optional(
      wholeNumberField(1_000, 31 * DAY, `must be a whole number from 1000 to ${31 * DAY} (milliseconds)`),
      900_000,
    ),
    /** Number of dead jobs above which the health check reports them. Default: 0. */
    threshold: v.optional(
      wholeNumberField(0, Number.MAX_SAFE_INTEGER, 'must be a whole number from 0 up'),
      0,
    ),
    /**
     * Whether the health check is DOWN above the threshold. Default: false, because a restart would not help.
     */
    down: v.optional(toggleField, false),
  },
  'must be a URL, or an object',
);

export const alertsSchema = v.object({ dead: v.optional(v.unknown()) }, 'must be an object of alerts');

/** How to alert about dead deliveries. */
type DeadAlertConfig = Written<typeof deadAlertSchema>;

/** The conditions about which Portico sends alerts. */
export interface AlertsConfig {
  readonly dead?: string | DeadAlertConfig;
}
