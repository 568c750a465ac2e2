import { parseJsonBody } from '../http/body/json-body.ts';
import { refuseCrossSite } from '../http/cross-site.ts';
import type { Exchange } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import { MEDIA_TYPES } from './media-type.ts';

/** More than any operation of this door takes, in bytes. */
export const BODY_LIMIT = 64 * 1024;

const NO_JSON = new HttpProblem(415, 'NO_JSON', 'Send the body as application/json');

/**
 * Refuses a write before its body is read: one from another site, and a body under none of the three media types. A
 * form is none of them, so that a page of another site cannot write in a browser without Sec-Fetch-Site either.
 */
export function refuseWrite(exchange: Exchange, bodyLength: number): void {
  refuseCrossSite(exchange);
  const { contentType } = exchange;
  if (contentType === null) {
    if (bodyLength > 0) throw NO_JSON;
    return;
  }
  const mediaType = contentType.split(';', 1)[0]?.trim().toLowerCase();
  if (!MEDIA_TYPES.some((type) => type === mediaType)) throw NO_JSON;
}

/** What a body holds: strict JSON, undefined when it is empty. Throws HttpProblem. */
export function parseWrite(body: Buffer): unknown {
  return body.length === 0 ? undefined : parseJsonBody(body);
}
