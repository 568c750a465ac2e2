import type { IncomingHttpHeaders } from 'node:http';
import { LIMITS } from '../server/limits.ts';

/** A request with unambiguous framing. */
export interface PlainRequest {
  readonly method: string;
  /** Path and query, as sent. */
  readonly url: string;
  /** By name in lower case; no name is repeated, and Content-Type is left out. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** The Content-Type header; null if absent. */
  readonly contentType: string | null;
  /** The bytes before the body, decoded as Latin-1. */
  readonly head: string;
  /** Length of head and body, in bytes. */
  readonly length: number;
}

/** Maximum head size, in bytes. Longer heads are rare and go to Node's parser, which has its own limit. */
const MAX_HEAD = 8 * 1024;
/** Longer heads are not cached, so that many connections use little memory, in bytes. */
const MAX_REMEMBERED = 1024;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * The plain subset of RFC 9112 2.1: a common method, a path, HTTP/1.1 and lines that end with CRLF. No two
 * alternatives can begin alike, so matching takes linear time.
 */
const HEAD =
  /^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \/[\w\-.~!$&'()*+,;=:@%/?]* HTTP\/1\.1\r\n(?:[\w-]+:[\t\x20-\x7e\x80-\xff]*\r\n)+\r\n$/;
const LENGTH = /^\d{1,15}$/;

/**
 * Parses the request at the start of `chunk`. Returns undefined unless it is plain: the head must be
 * complete, nothing may follow the body, no field may be repeated, and no field may affect the connection or
 * the body's framing. Node's parser reads plain requests identically.
 */
export function readPlainRequest(chunk: Buffer): PlainRequest | undefined {
  const end = chunk.indexOf(HEAD_END);
  if (end === -1 || end > MAX_HEAD) return undefined;
  const head = chunk.toString('latin1', 0, end + HEAD_END.length);
  if (!HEAD.test(head)) return undefined;
  const methodEnd = head.indexOf(' ');
  const urlEnd = head.indexOf(' ', methodEnd + 1);
  const headers = readFields(head, head.indexOf('\n', urlEnd) + 1);
  if (headers === undefined || !isUsual(headers)) return undefined;
  const length = head.length + Number(headers['content-length'] ?? 0);
  if (length < chunk.length) return undefined;
  const contentType = headers['content-type'] ?? null;
  if (contentType !== null) headers['content-type'] = undefined;
  return {
    method: head.slice(0, methodEnd),
    url: head.slice(methodEnd + 1, urlEnd),
    headers,
    contentType,
    head,
    length,
  };
}

/**
 * Parses the requests of a connection. Most clients repeat their head byte for byte, so the last one is
 * cached.
 */
export class PlainRequestReader {
  #last: PlainRequest | undefined;

  /** Like `readPlainRequest`; returns the same object for the same head. */
  read(chunk: Buffer): PlainRequest | undefined {
    const last = this.#last;
    if (last !== undefined && chunk.toString('latin1', 0, last.head.length) === last.head) {
      return chunk.length > last.length ? undefined : last;
    }
    const request = readPlainRequest(chunk);
    this.#last = request !== undefined && request.head.length <= MAX_REMEMBERED ? request : undefined;
    return request;
  }
}

/** Undefined if a name is repeated or is a property that every object inherits. */
function readFields(head: string, start: number): IncomingHttpHeaders | undefined {
  const headers: IncomingHttpHeaders = {};
  let count = 0;
  const end = head.length - 2;
  for (let line = start; line < end; ) {
    const colon = head.indexOf(':', line);
    const lineEnd = head.indexOf('\r', colon);
    const name = head.slice(line, colon).toLowerCase();
    // Node drops fields beyond this limit.
    if (headers[name] !== undefined || ++count >= LIMITS.maxHeaders) return undefined;
    headers[name] = withoutBlanks(head, colon + 1, lineEnd);
    line = lineEnd + 2;
  }
  return headers;
}

/** Strips spaces and tabs (RFC 9112 5.1); String.trim would strip more. */
function withoutBlanks(text: string, start: number, end: number): string {
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Whether no field affects the connection and the body's length is plain. */
function isUsual(headers: IncomingHttpHeaders): boolean {
  const { connection, 'content-length': length } = headers;
  return (
    headers.host !== undefined &&
    (connection === undefined || connection === 'keep-alive' || connection === 'Keep-Alive') &&
    (length === undefined || LENGTH.test(length)) &&
    headers['transfer-encoding'] === undefined &&
    headers.upgrade === undefined &&
    headers.expect === undefined &&
    // Node's parser treats it like Connection.
    headers['proxy-connection'] === undefined &&
    // Node turns it into an array.
    headers['set-cookie'] === undefined
  );
}
