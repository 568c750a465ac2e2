import type { IncomingHttpHeaders } from 'node:http';
import { LIMITS } from '../server/limits.ts';

/** A request whose framing is unambiguous. */
export interface PlainRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  /** By name in lower case, each sent once, without Content-Type. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** The Content-Type header; null without one. */
  readonly contentType: string | null;
  /** The bytes before the body, each as one character. */
  readonly head: string;
  /** Head and body, in bytes. */
  readonly length: number;
}

/** Longer heads are rare, and Node's parser has its own limit for them. */
const MAX_HEAD = 8 * 1024;
/** Longer heads are not remembered, so that many connections hold little, in bytes. */
const MAX_REMEMBERED = 1024;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * What is plain of the grammar of RFC 9112 2.1: a usual method, a path, HTTP/1.1 and lines that end with CRLF. No two
 * parts of it can begin alike, so that its time is linear.
 */
const HEAD =
  /^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \/[\w\-.~!$&'()*+,;=:@%/?]* HTTP\/1\.1\r\n(?:[\w-]+:[\t\x20-\x7e\x80-\xff]*\r\n)+\r\n$/;
const LENGTH = /^\d{1,15}$/;

/**
 * Reads the request that `chunk` begins with. Undefined is for all that is not plain: a head that is not whole, more
 * behind the request than its body, a field that comes twice or that says something about how the connection or the
 * body is to be read. What is plain means the same to Node's parser.
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

/** Reads the requests of one connection. Most clients repeat their head byte for byte, and it is parsed once. */
export class PlainRequestReader {
  #last: PlainRequest | undefined;

  /** What `readPlainRequest` gives; the same object for the same head. */
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

/** Undefined when a name comes twice, or is one that every object has. */
function readFields(head: string, start: number): IncomingHttpHeaders | undefined {
  const headers: IncomingHttpHeaders = {};
  let count = 0;
  const end = head.length - 2;
  for (let line = start; line < end; ) {
    const colon = head.indexOf(':', line);
    const lineEnd = head.indexOf('\r', colon);
    const name = head.slice(line, colon).toLowerCase();
    // The limit is the one behind which Node drops fields.
    if (headers[name] !== undefined || ++count >= LIMITS.maxHeaders) return undefined;
    headers[name] = withoutBlanks(head, colon + 1, lineEnd);
    line = lineEnd + 2;
  }
  return headers;
}

/** Without the spaces and tabs around it (RFC 9112 5.1), which are fewer than String.trim takes away. */
function withoutBlanks(text: string, start: number, end: number): string {
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Whether the fields ask for nothing that is a matter of the connection, and the body's length is plain. */
function isUsual(headers: IncomingHttpHeaders): boolean {
  const { connection, 'content-length': length } = headers;
  return (
    headers.host !== undefined &&
    (connection === undefined || connection === 'keep-alive' || connection === 'Keep-Alive') &&
    (length === undefined || LENGTH.test(length)) &&
    headers['transfer-encoding'] === undefined &&
    headers.upgrade === undefined &&
    headers.expect === undefined &&
    // The parser takes it for Connection.
    headers['proxy-connection'] === undefined &&
    // Node makes a list of it.
    headers['set-cookie'] === undefined
  );
}
