import { STATUS_CODES } from 'node:http';
import { LIMITS } from './limits.ts';

/** What becomes of the connection behind a reply: it stays, the door drains, or it has had its number of requests. */
export type Afterwards = 'stays' | 'drains' | 'worn out';

const KEEP = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(LIMITS.keepAliveTimeout / 1_000)}, max=${LIMITS.maxRequestsPerConnection}\r\n`;
const CONNECTION: Readonly<Record<Afterwards, string>> = {
  stays: KEEP,
  drains: '',
  'worn out': 'Connection: close\r\n',
};

/** The heads of replies, byte for byte as the framework and Node write them. */
export class ReplyHeads {
  #date = '';
  /** When the date is another one, in milliseconds since 1970. */
  #dateEnds = 0;

  /** The head of one reply with the blank line behind it; `headers` come before the content type. */
  head(
    status: number,
    id: string,
    contentType: string,
    contentLength: number,
    headers: Readonly<Record<string, string>> | undefined,
    afterwards: Afterwards,
  ): string {
    let fields = afterwards === 'drains' ? 'connection: close\r\n' : '';
    fields += `x-request-id: ${id}\r\nx-content-type-options: nosniff\r\n`;
    for (const name in headers) fields += `${name}: ${headers[name]}\r\n`;
    return (
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields}content-type: ${contentType}\r\n` +
      `content-length: ${contentLength}\r\nDate: ${this.#now()}\r\n${CONNECTION[afterwards]}\r\n`
    );
  }

  #now(): string {
    const now = Date.now();
    // A clock that is set back shows in the next second.
    if (now >= this.#dateEnds || now < this.#dateEnds - 1_000) {
      this.#dateEnds = now - (now % 1_000) + 1_000;
      this.#date = new Date(now).toUTCString();
    }
    return this.#date;
  }
}
