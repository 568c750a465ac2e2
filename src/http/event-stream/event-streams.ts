import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { requestFields } from '../../observability/trace/request-fields.ts';
import { findExchange } from '../add-endpoint.ts';
import { cutEndless, noteEndless } from '../server/endless-reply.ts';
import type { EventBacklog, UnreadEvents } from './unread-events.ts';

/** A sign of life this often, in milliseconds, keeps proxies from closing a quiet stream and finds readers that are gone. */
export const KEEP_ALIVE = 12_000;

/** The header fields of an event stream. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // nginx would gather events otherwise.
  'x-accel-buffering': 'no',
} as const;

/** How a source is sent as server-sent events. */
export interface EventFormat<T> {
  /** Sent before the first event; default nothing. */
  readonly begin?: string;
  /** The events of a value. */
  text(value: T): string;
  /** Sent at the end, whether the source or a stop has ended it. */
  end(): string;
  /**
   * Whether the source waits for a reader that is behind: for one that holds nothing meanwhile. Otherwise the reader is
   * cut. Default false.
   */
  readonly waits?: boolean;
}

/** The event streams of one door, so that a stop can end them. */
export class EventStreams {
  readonly #open = new Set<() => void>();
  readonly #unread: UnreadEvents;
  #ended = false;

  constructor(unread: UnreadEvents) {
    this.#unread = unread;
  }

  /** Ends all streams, and from now on each new one as soon as it is open. */
  end(): void {
    this.#ended = true;
    for (const end of this.#open) end();
  }

  /** Sends the values of a source as server-sent events. Resolves once the stream has ended. */
  async send<T>(reply: FastifyReply, source: AsyncIterable<T>, format: EventFormat<T>): Promise<void> {
    reply.hijack();
    // A stream may last for hours.
    findExchange(reply.request)?.dropBody();
    const { raw } = reply;
    const iterator = source[Symbol.asyncIterator]();
    const backlog = this.#unread.reader();
    const keepAlive = setInterval(() => {
      if (format.waits !== true || !backlog.isTooLong) send(':\n\n');
    }, KEEP_ALIVE);
    const send = (text: string) => {
      if (raw.destroyed) return;
      if (format.waits !== true && backlog.isTooLong) cutEndless(raw);
      else write(raw, backlog, text);
    };
    // Does not wait for the source: that may be in the middle of something that takes forever.
    const end = () => {
      if (!this.#open.delete(end)) return;
      clearInterval(keepAlive);
      Promise.resolve(iterator.return?.()).catch(() => {});
      if (!raw.destroyed) raw.end(format.end());
    };
    this.#open.add(end);
    raw.writeHead(200, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...EVENT_STREAM_HEADERS });
    raw.flushHeaders();
    noteEndless(raw);
    raw.on('close', end);
    // A client that closes its half waits for the reply to a request, which a stream is not.
    raw.socket?.once('end', () => raw.destroy());
    // The reader may have left before the source was there.
    if (raw.destroyed) end();
    // A result that is there already is still sent.
    else if (this.#ended) setImmediate(end);
    try {
      if (format.begin !== undefined && this.#open.has(end)) send(format.begin);
      while (this.#open.has(end)) {
        const { value, done } = await iterator.next();
        if (done === true) break;
        if (this.#open.has(end)) send(format.text(value));
        if (format.waits) await taken(raw, backlog);
      }
    } catch (error) {
      // The source gave this reader up, or failed: a cut connection says that events are missing.
      reply.log.warn({ ...requestFields(reply.request), err: error }, 'event stream cut');
      cutEndless(raw);
    } finally {
      end();
    }
  }
}

function write(raw: ServerResponse, backlog: EventBacklog, text: string): void {
  // Twice its bytes would wait for a reader of text.
  const bytes = Buffer.from(text);
  backlog.add(bytes.length);
  raw.write(bytes, () => backlog.remove(bytes.length));
}

/** Resolves once a reader that is behind has taken what waits for it, or has left. */
async function taken(raw: ServerResponse, backlog: EventBacklog): Promise<void> {
  if (!backlog.isTooLong || raw.destroyed) return;
  await new Promise<void>((resolve) => {
    raw.once('close', resolve);
    backlog.whenEmpty(() => {
      raw.off('close', resolve);
      resolve();
    });
  });
}
