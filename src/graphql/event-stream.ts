import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { ExecutionResult } from 'graphql';

/** A comment this often, in milliseconds, keeps proxies from closing a quiet stream and finds readers that are gone. */
const KEEP_ALIVE = 12_000;
/** Bytes that may wait for a reader before it is cut. */
const MAX_BUFFERED = 256 * 1024;

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // nginx would gather events otherwise.
  'x-accel-buffering': 'no',
};

/** The event streams of one door, so that a stop can end them. */
export class EventStreams {
  readonly #open = new Set<() => void>();

  get size(): number {
    return this.#open.size;
  }

  /** Tells every reader that its stream is complete. */
  end(): void {
    for (const end of this.#open) end();
  }

  /**
   * Sends results as server-sent events (GraphQL over SSE, distinct connections mode): `next` for each of them,
   * `complete` at the end. A reader that takes nothing while `MAX_BUFFERED` bytes wait is cut.
   */
  async send(
    reply: FastifyReply,
    results: AsyncIterable<ExecutionResult>,
    format: (result: ExecutionResult) => string,
  ) {
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...HEADERS });
    raw.flushHeaders();
    const iterator = results[Symbol.asyncIterator]();
    const stop = () => {
      void iterator.return?.();
    };
    const keepAlive = setInterval(() => write(raw, ':\n\n'), KEEP_ALIVE);
    this.#open.add(stop);
    raw.on('close', stop);
    try {
      for (;;) {
        const { value, done } = await iterator.next();
        if (done === true || raw.destroyed) break;
        write(raw, `event: next\ndata: ${format(value)}\n\n`);
      }
      if (!raw.destroyed) raw.end('event: complete\ndata: \n\n');
    } catch {
      // The source gave this reader up, or failed: a cut connection says that events are missing.
      raw.destroy();
    } finally {
      clearInterval(keepAlive);
      this.#open.delete(stop);
      stop();
    }
  }
}

function write(raw: ServerResponse, text: string): void {
  if (raw.destroyed) return;
  raw.write(text);
  if (raw.writableLength > MAX_BUFFERED) raw.destroy();
}
