import { isUtf8 } from 'node:buffer';
import type { DeliveryDetail, DeliverySummary, JobDetail } from './delivery-log.ts';

/** Which details of a delivery are shown. */
export interface DetailView {
  /** Whether the body and the errors are shown. */
  readonly shown: boolean;
  /** A longer body is cut and encoded in base64; in bytes. */
  readonly maxBodyBytes: number;
  /** Whether a JSON body is encoded in base64 too, so that it is shown byte for byte; default false. */
  readonly raw?: boolean;
  /** Redacts secrets in an error message. */
  mask(text: string): string;
}

/** A delivery in a list, as a JSON value. */
export function summaryJson({ seq, id, source, event, status, receivedAt, attempts, size }: DeliverySummary) {
  return { seq, id, source, event, status, receivedAt: iso(receivedAt), attempts, size };
}

/**
 * A delivery with its jobs and body, as JSON text. A short JSON body is copied as text into `body`, so no number loses
 * precision; any other body becomes `bodyBase64` with `bodyTruncated`.
 */
export function detailJson(detail: DeliveryDetail, view: DetailView): string {
  const { dataPointer, contentType, jobs } = detail;
  const head = JSON.stringify({
    ...summaryJson(detail),
    contentType,
    dataPointer,
    jobs: jobs.map((job) => jobJson(job, view)),
  });
  return view.shown ? `${head.slice(0, -1)},${bodyMembers(detail.body, view)}}` : head;
}

function jobJson({ target, status, attempts, dueAt, error, finishedAt }: JobDetail, view: DetailView) {
  return {
    target,
    status,
    attempts,
    nextAttemptAt: status === 'pending' ? iso(dueAt) : null,
    finishedAt: finishedAt === null ? null : iso(finishedAt),
    ...(view.shown && { error: error === null ? null : view.mask(error) }),
  };
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
