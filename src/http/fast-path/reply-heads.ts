import { STATUS_CODES } from 'node:http';
import { LIMITS } from '../limits.ts';

/** What becomes of the connection behind a reply: it stays, the door drains, or it has had its number of requests. */
export type Afterwards = 'stays' | 'drains' | 'worn out';

const OK = `HTTP/1.1 200 ${STATUS_CODES[200]}`;
const USUAL = `${OK}\r\nx-request-id: `;
const BEHIND_ID = '\r\nx-content-type-options: nosniff\r\n';
const KEEP = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(LIMITS.keepAliveTimeout / 1_000)}, max=${LIMITS.maxRequestsPerConnection}\r\n\r\n`;

/** The heads of replies, byte for byte as the framework and Node write them. */
export class ReplyHeads {
  /** The fields that end a head when the connection stays. */
  #stays = '';
  #date = '';
  /** When the date is another one, in milliseconds since 1970. */
  #dateEnds = 0;
  #lastType: string | undefined;
  #lastLength = 0;
  #lastEnd = '';

  /** The head of one reply with the blank line behind it; `headers` come before the content type. */
  head(
    status: number,
    id: string,
    contentType: string,
    contentLength: number,
    headers: Readonly<Record<string, string>> | undefined,
    afterwards: Afterwards,
  ): string {
    this.#readClock();
    if (status === 200 && headers === undefined && afterwards === 'stays') {
      return USUAL + id + this.#usualEnd(contentType, contentLength);
    }
    const line = status === 200 ? OK : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}`;
    const drains = afterwards === 'drains' ? '\r\nconnection: close' : '';
    let more = '';
    for (const name in headers) more += `${name}: ${headers[name]}\r\n`;
    return `${line}${drains}\r\nx-request-id: ${id}${BEHIND_ID}${more}content-type: ${contentType}\r\ncontent-length: ${contentLength}\r\n${this.#end(afterwards)}`;
  }

  /** What comes behind the id: mostly what came there the last time. */
  #usualEnd(contentType: string, contentLength: number): string {
    if (contentType !== this.#lastType || contentLength !== this.#lastLength) {
      this.#lastType = contentType;
      this.#lastLength = contentLength;
      const end = `${BEHIND_ID}content-type: ${contentType}\r\ncontent-length: ${contentLength}\r\n${this.#stays}`;
      // A text in one piece; what was put together is many until it is written, each time anew.
      this.#lastEnd = Buffer.from(end, 'latin1').toString('latin1');
    }
    return this.#lastEnd;
  }

  #end(afterwards: Afterwards): string {
    if (afterwards === 'stays') return this.#stays;
    return `${this.#date}${afterwards === 'drains' ? '' : 'Connection: close\r\n'}\r\n`;
  }

  #readClock(): void {
    const now = Date.now();
    // A clock that is set back shows in the next second.
    if (now < this.#dateEnds && now >= this.#dateEnds - 1_000) return;
    this.#dateEnds = now - (now % 1_000) + 1_000;
    this.#date = `Date: ${new Date(now).toUTCString()}\r\n`;
    this.#stays = this.#date + KEEP;
    this.#lastType = undefined;
  }
}
