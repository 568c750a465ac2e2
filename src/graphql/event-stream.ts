import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { ExecutionResult } from 'graphql';
import type { EventBacklog, UnreadEvents } from './unread-events.ts';

/** A sign of life this often, in milliseconds, keeps proxies from closing a quiet stream and finds readers that are gone. */
export const KEEP_ALIVE = 12_000;

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // nginx would gather events otherwise.
  'x-accel-buffering': 'no',
};

/** The event streams of one door, so that a stop can end them. */
export class EventStreams {
  readonly #open = new Set<() => void>();
  readonly #unread: UnreadEvents;
  #ended = false;

  constructor(unread: UnreadEvents) {
    this.#unread = unread;
  }

  /** Completes all streams, and from now on each new one as soon as it is open. */
  end(): void {
    this.#ended = true;
    for (const end of this.#open) end();
  }

  /**
   * Sends results as server-sent events (GraphQL over SSE, distinct connections mode): `next` for each of them,
   * `complete` at the end. A reader that has left too much waiting is cut.
   */
  async send(
    reply: FastifyReply,
    results: AsyncIterable<ExecutionResult>,
    format: (result: ExecutionResult) => string,
  ): Promise<void> {
    reply.hijack();
    const { raw } = reply;
    const iterator = results[Symbol.asyncIterator]();
    const backlog = this.#unread.reader();
    const keepAlive = setInterval(() => write(raw, backlog, ':\n\n'), KEEP_ALIVE);
    // Does not wait for the source: that may be in the middle of something that takes forever.
    const end = () => {
      if (!this.#open.delete(end)) return;
      clearInterval(keepAlive);
      Promise.resolve(iterator.return?.()).catch(() => {});
      if (!raw.destroyed) raw.end('event: complete\ndata: \n\n');
    };
    this.#open.add(end);
    raw.writeHead(200, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...HEADERS });
    raw.flushHeaders();
    raw.on('close', end);
    // A client that closes its half waits for the reply to a request, which a stream is not.
    raw.socket?.once('end', () => raw.destroy());
    // The reader may have left before the source was there.
    if (raw.destroyed) end();
    // A result that is there already is still sent.
    else if (this.#ended) setImmediate(end);
    try {
      while (this.#open.has(end)) {
        const { value, done } = await iterator.next();
        if (done === true) break;
        if (this.#open.has(end)) write(raw, backlog, `event: next\ndata: ${format(value)}\n\n`);
      }
    } catch (error) {
      // The source gave this reader up, or failed: a cut connection says that events are missing.
      reply.log.warn({ reqId: reply.request.id, err: error }, 'event stream cut');
      raw.destroy();
    } finally {
      end();
    }
  }
}

function write(raw: ServerResponse, backlog: EventBacklog, text: string): void {
  if (raw.destroyed) return;
  if (backlog.isTooLong) {
    raw.destroy();
    return;
  }
  // Twice its bytes would wait for a reader of text.
  const bytes = Buffer.from(text);
  backlog.add(bytes.length);
  raw.write(bytes, () => backlog.remove(bytes.length));
}
