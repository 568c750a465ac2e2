import { isUtf8 } from 'node:buffer';
import type { DeliveryDetail, DeliverySummary, JobDetail } from './delivery-log.ts';

/** What of a delivery's details may be shown. */
export interface DetailView {
  /** Whether the body and the errors are shown at all. */
  readonly shown: boolean;
  /** A longer body is not given as JSON, and cut; in bytes. */
  readonly maxBodyBytes: number;
  /** Takes out of an error what nobody may see. */
  mask(text: string): string;
}

/** A delivery in a list, for programs. */
export function summaryJson({ seq, id, source, event, status, receivedAt, attempts, size }: DeliverySummary) {
  return { seq, id, source, event, status, receivedAt: iso(receivedAt), attempts, size };
}

/**
 * A delivery with all there is to know, as JSON text. The body stands in it character by character, so that no
 * number loses a digit: as `body` when it is JSON and short, else as `bodyBase64` with `bodyTruncated`.
 */
export function detailJson(detail: DeliveryDetail, view: DetailView): string {
  const { dataPointer, contentType, jobs } = detail;
  const head = JSON.stringify({
    ...summaryJson(detail),
    contentType,
    dataPointer,
    jobs: jobs.map((job) => jobJson(job, view)),
  });
  return view.shown ? `${head.slice(0, -1)},${bodyMembers(detail.body, view.maxBodyBytes)}}` : head;
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

function bodyMembers(body: Uint8Array, most: number): string {
  const text = body.byteLength <= most ? jsonText(body) : undefined;
  if (text !== undefined) return `"body":${text}`;
  const base64 = Buffer.from(body.subarray(0, Math.min(most, body.byteLength))).toString('base64');
  return `"bodyBase64":"${base64}","bodyTruncated":${body.byteLength > most}`;
}

/** A body as JSON text on one line; undefined when it is none. */
export function jsonText(body: Uint8Array): string | undefined {
  if (!isUtf8(body)) return undefined;
  // The receiver takes a byte order mark too.
  const text = Buffer.from(body)
    .toString()
    .replace(/^\ufeff/, '');
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  // Line breaks stand in JSON only between its parts.
  return text.replace(/[\r\n]/g, ' ');
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
