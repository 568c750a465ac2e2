import { STATUS_CODES } from 'node:http';
import { withVary } from '../fastify.ts';
import { LIMITS } from '../server/limits.ts';

/** The contents of a reply's head. */
interface HeadParts {
  readonly status: number;
  /** The request's id. */
  readonly id: string;
  /** Empty for none. */
  readonly contentType: string;
  /** In bytes; undefined for a reply in pieces. */
  readonly contentLength: number | undefined;
  /**
   * Headers added before the endpoint answered, by name in lower case; disjoint from `headers` except for
   * Vary.
   */
  readonly added?: Readonly<Record<string, string>> | undefined;
  /** By name in lower case; written before the content type. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Whether the connection closes after the reply. */
  readonly closes: boolean;
}

const OK = `HTTP/1.1 200 ${STATUS_CODES[200]}`;
const OK_TO_ID = `${OK}\r\nx-request-id: `;
/** Every reply of a door starts with these two (server/listener.ts). */
const AFTER_ID = '\r\nx-content-type-options: nosniff\r\n';
const KEEP_ALIVE = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(LIMITS.keepAliveTimeout / 1_000)}\r\n\r\n`;

/** Writes reply heads, byte for byte as Fastify and Node do. */
export class ReplyHeads {
  #date = '';
  /** The end of the current second, in milliseconds since 1970. */
  #dateEnds = 0;
  /** The end of a head if the connection is kept alive. */
  #keepAliveEnd = '';
  /**
   * Cache of the last usual head's end: `#lastContent` follows other headers, `#lastEnd` follows the id if
   * there are none.
   */
  #lastType: string | undefined;
  #lastLength: number | undefined;
  #lastContent = '';
  #lastEnd = '';
  readonly #own = new LastFields();
  readonly #added = new LastFields();

  /** The head of a reply, including the blank line. */
  head(parts: HeadParts): string {
    this.#readClock();
    const { status, id, contentType, contentLength, added, headers, closes } = parts;
    if (status !== 200 || closes || contentLength === undefined || headers?.connection !== undefined)
      return this.#unusual(parts);
    if (headers?.vary !== undefined && added?.vary !== undefined) return this.#unusual(parts);
    if (contentType !== this.#lastType || contentLength !== this.#lastLength) {
      this.#lastType = contentType;
      this.#lastLength = contentLength;
      this.#lastContent = flat(content(contentType, contentLength) + this.#keepAliveEnd);
      this.#lastEnd = flat(AFTER_ID + this.#lastContent);
    }
    if (headers === undefined && added === undefined) return OK_TO_ID + id + this.#lastEnd;
    const fields = added === undefined ? '' : this.#added.textOf(added);
    const own = headers === undefined ? '' : this.#own.textOf(headers);
    return OK_TO_ID + id + AFTER_ID + fields + own + this.#lastContent;
  }

  #unusual(parts: HeadParts): string {
    const { status, id, contentType, contentLength, added, headers: own, closes } = parts;
    const headers = added === undefined ? own : { ...added, ...(own && withVary(added.vary, own)) };
    let text = status === 200 ? OK : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}`;
    if (closes) text += '\r\nconnection: close';
    text += `\r\nx-request-id: ${id}${AFTER_ID}`;
    let isLast = closes;
    for (const name in headers) {
      if (name === 'x-content-type-options') continue;
      if (name === 'connection') {
        if (closes) continue;
        isLast = true;
      }
      text += `${name}: ${headers[name]}\r\n`;
    }
    if (status === 304) text += `content-type: ${contentType}\r\n`;
    else if (status !== 204) text += content(contentType, contentLength);
    const end = isLast ? `${this.#date}\r\n` : this.#keepAliveEnd;
    // Node writes this field last.
    return text + (isChunked(parts) ? `${end.slice(0, -2)}Transfer-Encoding: chunked\r\n\r\n` : end);
  }

  #readClock(): void {
    const now = Date.now();
    // If the clock is set back, the date is corrected within a second.
    if (now < this.#dateEnds && now >= this.#dateEnds - 1_000) return;
    this.#dateEnds = now - (now % 1_000) + 1_000;
    this.#date = `Date: ${new Date(now).toUTCString()}\r\n`;
    this.#keepAliveEnd = this.#date + KEEP_ALIVE;
    this.#lastType = undefined;
  }
}

/** Flattens a concatenated string, so that V8 does not do so at each write. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Caches the text of the last headers object: endpoints reuse constant objects. */
class LastFields {
  #headers: HeadParts['headers'];
  #text = '';

  textOf(headers: Readonly<Record<string, string>>): string {
    if (headers !== this.#headers) {
      this.#headers = headers;
      this.#text = fieldsOf(headers);
    }
    return this.#text;
  }
}

function fieldsOf(headers: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name in headers) {
    if (name !== 'x-content-type-options') text += `${name}: ${headers[name]}\r\n`;
  }
  return text;
}

function content(type: string, length: number | undefined): string {
  const ofType = type === '' ? '' : `content-type: ${type}\r\n`;
  return length === undefined ? ofType : `${ofType}content-length: ${length}\r\n`;
}

/** Whether a body is sent in chunks because its length is unknown. */
export function isChunked({ contentLength, headers }: Pick<HeadParts, 'contentLength' | 'headers'>): boolean {
  return contentLength === undefined && headers?.['content-length'] === undefined;
}
