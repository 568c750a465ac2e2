import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { MaybePromise } from '../core/scheduler.ts';
import { didYouMean, quote } from '../core/text.ts';
import {
  type DeliveryFacts,
  isHandlerTarget,
  isTenantSource,
  MOMENT,
  type NewJob,
  parseMoment,
  type StoredDelivery,
} from './delivery.ts';
import { headersOf, parseDeliveryBody } from './delivery-body.ts';
import type { AttemptEntry } from './inbox.ts';

/**
 * The status of a delivery, derived from its jobs: `unhandled` if it has none, else `processing` if one is
 * leased, `pending` if one is open, `dead` if one is dead; otherwise all are `done`, or `discarded` by an
 * operator.
 */
export const DELIVERY_STATUSES = ['unhandled', 'processing', 'pending', 'dead', 'done', 'discarded'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A delivery in a list. Times are in milliseconds since the epoch. */
export interface DeliverySummary {
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string | null;
  /** The sender's event name if the source renames it; otherwise null. */
  readonly senderEvent: string | null;
  readonly status: DeliveryStatus;
  readonly receivedAt: number;
  /** Sum over all its jobs. */
  readonly attempts: number;
  /** Length of the body in bytes. */
  readonly size: number;
  /** The earliest planned time of its jobs, past or future; null if none was planned. */
  readonly plannedAt: number | null;
  /** The beginning of the error of one of its dead jobs; null if it has none. */
  readonly error: string | null;
}

/** One job of a delivery. */
export interface JobDetail {
  readonly target: string;
  readonly status: 'pending' | 'processing' | 'done' | 'dead' | 'discarded';
  readonly attempts: number;
  readonly dueAt: number;
  /** The planned time of its first attempt; null if there is none. */
  readonly plannedAt: number | null;
  readonly error: string | null;
  readonly finishedAt: number | null;
  /** See `MAX_CRASHES`. */
  readonly crashes: number;
  /** The recorded attempts that are kept, oldest first. */
  readonly history: readonly AttemptEntry[];
}

export interface DeliveryDetail extends DeliverySummary, Omit<StoredDelivery, 'senderEvent'> {
  readonly jobs: readonly JobDetail[];
}

/** Selects deliveries that meet all given conditions. */
export interface DeliveryFilter {
  readonly status?: DeliveryStatus;
  /** Either the sender's name or Portico's. */
  readonly event?: string;
  readonly source?: string;
  /** It has a job for this target. */
  readonly target?: string;
  /** Received at or after, in milliseconds since the epoch. */
  readonly since?: number;
  /** Received before, in milliseconds since the epoch. */
  readonly until?: number;
  /** The body contains this text, in UTF-8 and case-sensitive. */
  readonly text?: string;
}

/** Where a page starts: `before` a `seq` (newest first) or `after` one (oldest first). */
export type DeliveryCursor = { readonly before: number } | { readonly after: number };

export interface DeliveryPage {
  readonly items: readonly DeliverySummary[];
  /**
   * The `seq` before or after which the next page starts; undefined on the last page. A short or even empty
   * page can have one, because each page scans a bounded number of deliveries.
   */
  readonly next: number | undefined;
}

/** The deliveries of a window by status. */
export interface DeliveryCounts {
  /** A status without deliveries may be absent. */
  readonly counts: Readonly<Partial<Record<DeliveryStatus, number>>>;
  /** The `seq` before which the next window starts; undefined if the oldest delivery is counted. */
  readonly next: number | undefined;
}

/** What fails now. */
export interface FailingTargets {
  /** Deliveries of the status dead, of at most 10,000 that are examined. */
  readonly dead: number;
  /** The targets that have dead jobs, or open ones whose last attempt failed; the last to fail first. */
  readonly targets: readonly {
    readonly target: string;
    /** At most 10,000 are counted. */
    readonly dead: number;
    /** Open jobs whose last attempt failed, of at most 10,000 that are examined. */
    readonly retrying: number;
    /** In milliseconds since the epoch; null if no job is dead. */
    readonly lastDeadAt: number | null;
    readonly error: string | null;
  }[];
}

/** A job to reopen. */
export interface ReplayedJob extends NewJob {
  /** The target whose job it takes over. Default: its own. */
  readonly replaces?: string;
}

/** Lists, shows, replays and discards deliveries, for operators and tools. */
export interface DeliveryLog {
  /** Maximum number of concurrent changes; beyond it, changes may time out waiting for a connection. */
  readonly maxChanges: number;
  /** Returns up to `limit` deliveries, from the newest if there is no cursor. */
  list(filter: DeliveryFilter, limit: number, cursor?: DeliveryCursor): MaybePromise<DeliveryPage>;
  /** Counts a window of deliveries by status, from the newest if `before` is absent. */
  count(filter: DeliveryFilter, before?: number): MaybePromise<DeliveryCounts>;
  failing(): MaybePromise<FailingTargets>;
  find(id: string): MaybePromise<DeliveryDetail | undefined>;
  /**
   * The ids that `name` may mean: itself if it is a full id; otherwise at most `limit` ids that begin with
   * it, and the deliveries that have it as their sender's id.
   */
  resolve(name: string, limit: number): MaybePromise<readonly string[]>;
  /**
   * Reopens a delivery's jobs whose target is in `jobs`, or is replaced by a job of `jobs`, and resets their
   * attempts. An unhandled delivery gets `jobs` as new jobs. Resolves to false if nothing was reopened: the
   * delivery does not exist, one of its jobs is already open, or no job has such a target.
   */
  replay(id: string, jobs: readonly ReplayedJob[], now: number): Promise<boolean>;
  /** Discards the open and dead jobs of a delivery; resolves to false if it has none. */
  discard(id: string, now: number): Promise<boolean>;
}

/** The fields of a filter, in a query string or on the command line. */
export const FILTER_FIELDS = ['status', 'event', 'source', 'target', 'since', 'until', 'text'] as const;

type FilterField = (typeof FILTER_FIELDS)[number];

/** The given values by field, and the list of problems to report. */
export interface QueryTexts<F extends string> {
  /** The given text; undefined if absent. */
  text(field: F): string | undefined;
  /** The name of the field in messages, such as `--since`. */
  name(field: F): string;
  readonly problems: string[];
}

/** Parses a filter at `now`. Errors are added to `problems`; the result is then invalid. */
export function readFilter({ text, name, problems }: QueryTexts<FilterField>, now: number): DeliveryFilter {
  const given = text('status');
  const status = DELIVERY_STATUSES.find((known) => known === given);
  if (given !== undefined && status === undefined) {
    const hint = didYouMean(given, DELIVERY_STATUSES);
    problems.push(`${name('status')} must be one of ${DELIVERY_STATUSES.join(', ')}${hint}`);
  }
  const moment = (field: 'since' | 'until'): number | undefined => {
    const written = text(field);
    if (written === undefined) return undefined;
    const read = parseMoment(written, now);
    if (read === undefined) problems.push(`${name(field)} must be ${MOMENT}, not ${quote(written)}`);
    return read;
  };
  const filter = {
    status,
    event: text('event'),
    source: text('source'),
    target: text('target'),
    since: moment('since'),
    until: moment('until'),
    text: text('text') || undefined,
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** The parameters of a list of deliveries. */
export const LIST_FIELDS = [...FILTER_FIELDS, 'limit', 'before', 'after'] as const;

/** Parses a list's parameters, by default for `limit` deliveries. Errors are added to `problems`. */
export function readListQuery(
  texts: QueryTexts<(typeof LIST_FIELDS)[number]>,
  now: number,
  { limit, max }: { readonly limit: number; readonly max?: number },
) {
  const filter = readFilter(texts, now);
  const count = readCount(texts, 'limit', limit, max);
  const before = readCount(texts, 'before', undefined);
  // Before the first delivery there is none.
  const after = texts.text('after') === '0' ? 0 : readCount(texts, 'after', undefined);
  if (before !== undefined && after !== undefined)
    texts.problems.push(`${texts.name('before')} and ${texts.name('after')} exclude each other`);
  const cursor = after !== undefined ? { after } : before !== undefined ? { before } : undefined;
  return { filter, limit: count, ...(cursor !== undefined && { cursor }) };
}

/** Parses a whole number from 1 to `max`; returns `fallback` if it is absent. */
export function readCount<F extends string, T>(
  { text, name, problems }: QueryTexts<F>,
  field: F,
  fallback: T,
  max = Number.MAX_SAFE_INTEGER,
): number | T {
  const written = text(field);
  if (written === undefined) return fallback;
  const number = /^[1-9]\d{0,15}$/.test(written) ? Number(written) : Number.NaN;
  if (number <= max) return number;
  const range = max === Number.MAX_SAFE_INTEGER ? 'above 0' : `from 1 to ${max}`;
  problems.push(`${name(field)} must be a whole number ${range}, not ${quote(written)}`);
  return fallback;
}

interface DeliveryPagesOptions {
  readonly cursor?: DeliveryCursor;
  /** Maximum number of deliveries over all pages. Default: all. */
  readonly limit?: number;
  /** Maximum number of pages, with or without matches. Default: all. */
  readonly pages?: number;
}

/** Maximum number of deliveries per page, which bounds memory. */
const PAGE = 500;

/**
 * Yields matching deliveries page by page, from the newest if there is no cursor. Other work on the event
 * loop runs between pages. The `next` of the last page says where to continue.
 */
export async function* deliveryPages(
  log: Pick<DeliveryLog, 'list'>,
  filter: DeliveryFilter,
  { cursor, limit = Number.POSITIVE_INFINITY, pages = Number.POSITIVE_INFINITY }: DeliveryPagesOptions = {},
): AsyncGenerator<DeliveryPage, void> {
  let at = cursor;
  let left = limit;
  for (let count = 0; count < pages; count++) {
    const page = await log.list(filter, Math.min(PAGE, left), at);
    yield page;
    left -= page.items.length;
    if (page.next === undefined || left <= 0) return;
    at = cursor !== undefined && 'after' in cursor ? { after: page.next } : { before: page.next };
    await nextTick();
  }
}

/** Whether and how errors are shown. */
interface ErrorView {
  /** Whether to show the body, the headers, the answers and the errors. */
  readonly shown: boolean;
  /** Redacts secrets in a header, an answer or an error message. */
  mask(text: string): string;
}

/** Which details of a delivery are shown. */
interface DetailView extends ErrorView {
  /** A longer body is cut and encoded in base64. In bytes. */
  readonly maxBodyBytes: number;
  /** Whether to encode a JSON body in base64 too, to show its exact bytes. Default: false. */
  readonly raw?: boolean;
}

/** A delivery in a list, as a JSON value; without a view, errors are shown as they are. */
export function summaryJson(summary: DeliverySummary, view?: ErrorView) {
  const { seq, id, source, event, status, receivedAt, attempts, size, plannedAt } = summary;
  const names = { event, senderEvent: summary.senderEvent ?? event };
  const times = { receivedAt: iso(receivedAt), plannedAt: isoOrNull(plannedAt) };
  const error = view === undefined ? summary.error : masked(summary.error, view);
  return {
    seq,
    id,
    source,
    ...names,
    status,
    ...times,
    attempts,
    size,
    ...(view?.shown !== false && { error }),
  };
}

/**
 * A delivery with its headers, jobs, attempts and body, as JSON text. A short JSON body is copied as text
 * into `body`, so numbers keep their precision; any other body becomes `bodyBase64` with `bodyTruncated`.
 */
export function detailJson(detail: DeliveryDetail, view: DetailView): string {
  const { dataPointer, contentType, jobs, trace } = detail;
  const headers = Object.entries(headersOf(detail)).map(([name, value]) => [name, view.mask(value)]);
  const head = JSON.stringify({
    // The errors are those of its jobs.
    ...summaryJson(detail, { ...view, shown: false }),
    contentType,
    dataPointer,
    ...(trace != null && { trace }),
    ...(view.shown && { headers: Object.fromEntries(headers) }),
    jobs: jobs.map((job) => jobJson(job, view)),
  });
  return view.shown ? `${head.slice(0, -1)},${bodyMembers(detail.body, view)}}` : head;
}

function jobJson(job: JobDetail, view: DetailView) {
  const { target, status, attempts, crashes, dueAt, plannedAt, error, finishedAt, history } = job;
  return {
    target,
    status,
    attempts,
    crashes,
    nextAttemptAt: status === 'pending' ? iso(dueAt) : null,
    plannedAt: isoOrNull(plannedAt),
    finishedAt: isoOrNull(finishedAt),
    ...(view.shown && { error: masked(error, view) }),
    history: history.map((entry) => attemptJson(entry, view)),
  };
}

function attemptJson(
  { attempt, outcome, startedAt, duration, process, answer, error }: AttemptEntry,
  view: DetailView,
) {
  return {
    attempt,
    outcome,
    startedAt: iso(startedAt),
    durationMs: duration,
    process,
    status: answer?.status ?? null,
    ...(view.shown && { error: masked(error, view), answer: masked(answer?.body ?? null, view) }),
  };
}

function masked(text: string | null, { mask }: ErrorView): string | null {
  return text === null ? null : mask(text);
}

function bodyMembers(body: Uint8Array, { maxBodyBytes: maxBytes, raw = false }: DetailView): string {
  const text = !raw && body.byteLength <= maxBytes ? jsonText(body) : undefined;
  if (text !== undefined) return `"body":${text}`;
  const base64 = Buffer.from(body.subarray(0, maxBytes)).toString('base64');
  return `"bodyBase64":"${base64}","bodyTruncated":${body.byteLength > maxBytes}`;
}

/** A body as JSON text on one line; undefined if it is not JSON. */
export function jsonText(body: Uint8Array): string | undefined {
  if (!isUtf8(body)) return undefined;
  // The receiver accepts a byte order mark too.
  const text = Buffer.from(body)
    .toString()
    .replace(/^\ufeff/, '');
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  // JSON strings contain no raw line breaks, so these are whitespace.
  return text.replace(/[\r\n]/g, ' ');
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

/** Decides which jobs a delivery gets with the current configuration; `body` is the parsed body. */
export type ReplayPlan = (
  delivery: DeliveryFacts & Pick<StoredDelivery, 'headers'>,
  body: unknown,
) => readonly NewJob[];

/** Why an action did not change a delivery. */
export const REFUSALS = {
  'not-found': 'There is no such delivery',
  open: 'The delivery is still open; wait until it ends, or discard it',
  'no-handler': 'Nothing handles this delivery now',
  settled: 'The delivery has no open or dead jobs',
} as const;

type Refusal = keyof typeof REFUSALS;

/** What operators can do to deliveries. */
export const ACTIONS = {
  replay: { done: 'replayed', isEligible: (status) => !isOpen(status), act: replayDelivery },
  discard: {
    done: 'discarded',
    isEligible: (status) => isOpen(status) || status === 'dead',
    act: ({ log }, id, now) => discardDelivery(log, id, now),
  },
} as const satisfies Readonly<Record<string, Action>>;

export type ActionName = keyof typeof ACTIONS;

interface Action {
  /** The result for a changed delivery. */
  readonly done: 'replayed' | 'discarded';
  /** Whether it may change deliveries of this status. */
  isEligible(status: DeliveryStatus): boolean;
  act(deliveries: Deliveries, id: string, now: number): Promise<'replayed' | 'discarded' | Refusal>;
}

/** The deliveries of a service, and the jobs that a replay creates. */
export interface Deliveries {
  readonly log: DeliveryLog;
  readonly plan: ReplayPlan;
}

/** Whether a delivery has an open job. */
function isOpen(status: DeliveryStatus): boolean {
  return status === 'pending' || status === 'processing';
}

/** Reopens the dead jobs of a delivery, or all its jobs if none is dead. A running service then runs them. */
async function replayDelivery(
  { log, plan }: Deliveries,
  id: string,
  now: number,
): Promise<'replayed' | Refusal> {
  const found = await log.find(id);
  if (found === undefined) return 'not-found';
  if (isOpen(found.status)) return 'open';
  const jobs = jobsToOpen(found, plan);
  if (jobs.length === 0) return 'no-handler';
  return (await log.replay(id, jobs, now)) ? 'replayed' : 'open';
}

/** Discards the open and dead jobs of a delivery. */
async function discardDelivery(log: DeliveryLog, id: string, now: number): Promise<'discarded' | Refusal> {
  if (await log.discard(id, now)) return 'discarded';
  return (await log.find(id)) === undefined ? 'not-found' : 'settled';
}

/**
 * Leaves out jobs of removed handlers and forward addresses, because nothing would run them. A delivery has
 * one handler: if a handler of the event's other name is responsible now, it takes over the job of the former
 * one.
 */
function jobsToOpen(delivery: DeliveryDetail, plan: ReplayPlan): readonly ReplayedJob[] {
  const { jobs } = delivery;
  if (isTenantSource(delivery.source)) {
    const ended = jobs.filter(({ status }) => status === 'dead');
    return (ended.length > 0 ? ended : jobs).map(({ target }) => ({ target, orderKey: null }));
  }
  const planned = plan(delivery, parsed(delivery));
  if (jobs.length === 0) return planned;
  const dead = jobs.filter(({ status }) => status === 'dead');
  const targets = new Set((dead.length > 0 ? dead : jobs).map(({ target }) => target));
  const former = jobs.findLast(({ target }) => isHandlerTarget(target))?.target;
  return planned.flatMap((job) => {
    if (targets.has(job.target)) return [job];
    const takesOver = isHandlerTarget(job.target) && former !== undefined && targets.has(former);
    return takesOver ? [{ ...job, replaces: former }] : [];
  });
}

function parsed(delivery: DeliveryDetail): unknown {
  try {
    return parseDeliveryBody(delivery);
  } catch {
    // Only the rules of the plan need the body.
    return undefined;
  }
}
