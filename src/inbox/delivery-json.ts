import { isUtf8 } from 'node:buffer';
import type { AttemptEntry } from './attempts.ts';
import { headersOf } from './delivery-headers.ts';
import type { DeliveryDetail, DeliverySummary, JobDetail } from './delivery-log.ts';

/** Which details of a delivery are shown. */
export interface DetailView {
  /** Whether the body, the headers, the answers and the errors are shown. */
  readonly shown: boolean;
  /** A longer body is cut and encoded in base64; in bytes. */
  readonly maxBodyBytes: number;
  /** Whether a JSON body is encoded in base64 too, so that it is shown byte for byte; default false. */
  readonly raw?: boolean;
  /** Redacts secrets in a header, an answer or an error message. */
  mask(text: string): string;
}

/** A delivery in a list, as a JSON value. */
export function summaryJson(summary: DeliverySummary) {
  const { seq, id, source, event, status, receivedAt, attempts, size, plannedAt } = summary;
  const names = { event, senderEvent: summary.senderEvent ?? event };
  const times = { receivedAt: iso(receivedAt), plannedAt: isoOrNull(plannedAt) };
  return { seq, id, source, ...names, status, ...times, attempts, size };
}

/**
 * A delivery with its headers, jobs, attempts and body, as JSON text. A short JSON body is copied as text into `body`, so no number loses
 * precision; any other body becomes `bodyBase64` with `bodyTruncated`.
 */
export function detailJson(detail: DeliveryDetail, view: DetailView): string {
  const { dataPointer, contentType, jobs, trace } = detail;
  const headers = Object.entries(headersOf(detail)).map(([name, value]) => [name, view.mask(value)]);
  const head = JSON.stringify({
    ...summaryJson(detail),
    contentType,
    dataPointer,
    ...(trace != null && { trace }),
    ...(view.shown && { headers: Object.fromEntries(headers) }),
    jobs: jobs.map((job) => jobJson(job, view)),
  });
  return view.shown ? `${head.slice(0, -1)},${bodyMembers(detail.body, view)}}` : head;
}

function jobJson(job: JobDetail, view: DetailView) {
  const { target, status, attempts, deaths, dueAt, plannedAt, error, finishedAt, history } = job;
  return {
    target,
    status,
    attempts,
    deaths,
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

function masked(text: string | null, { mask }: DetailView): string | null {
  return text === null ? null : mask(text);
}

function bodyMembers(body: Uint8Array, { maxBodyBytes: maxBytes, raw = false }: DetailView): string {
  const text = !raw && body.byteLength <= maxBytes ? jsonText(body) : undefined;
  if (text !== undefined) return `"body":${text}`;
  const base64 = Buffer.from(body.subarray(0, maxBytes)).toString('base64');
  return `"bodyBase64":"${base64}","bodyTruncated":${body.byteLength > maxBytes}`;
}

/** A body as JSON text on one line; undefined when it is no JSON. */
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
