import type { FastifyReply } from 'fastify';
import { HttpProblem } from '../../http/problem.ts';
import { cutEndless, noteEndless } from '../../http/server/endless-reply.ts';

/** A sign of life this often, in milliseconds, keeps proxies from closing a quiet stream. */
const KEEP_ALIVE = 12_000;
/** A page that reads nothing is cut at so many bytes; it connects again and goes on where it was. */
const MAX_WAITING = 1024 * 1024;
const MAX_STREAMS = 32;

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  // nginx would gather events otherwise.
  'x-accel-buffering': 'no',
};

/** One open stream of server-sent events. */
export interface EventStream {
  /** Sends an event; `data` is on one line. With an id a reader that connects again says how far it was. */
  send(event: string, data: string, id: string): void;
}

/** The open event streams of the console, so that a stop can end them. */
export class EventStreams {
  readonly #open = new Set<() => void>();
  #ended = false;

  /** Opens a stream on a reply; `start` returns what ends its sources. Throws HttpProblem when there are too many. */
  open(reply: FastifyReply, start: (stream: EventStream) => Disposable): void {
    if (this.#open.size >= MAX_STREAMS) {
      throw new HttpProblem(503, 'CONSOLE_STREAMS', 'Too many consoles are open', {
        headers: { 'retry-after': '10' },
      });
    }
    reply.hijack();
    const { raw } = reply;
    let source: Disposable | undefined;
    const write = (text: string) => {
      if (raw.writableLength > MAX_WAITING) cutEndless(raw);
      else if (!raw.destroyed) raw.write(text);
    };
    const keepAlive = setInterval(() => write(':\n\n'), KEEP_ALIVE);
    const end = () => {
      if (!this.#open.delete(end)) return;
      clearInterval(keepAlive);
      source?.[Symbol.dispose]();
      if (!raw.destroyed) raw.end();
    };
    this.#open.add(end);
    raw.writeHead(200, HEADERS);
    noteEndless(raw);
    raw.on('close', end);
    raw.socket?.once('end', () => raw.destroy());
    write('retry: 2000\n\n');
    if (raw.destroyed || this.#ended) {
      end();
      return;
    }
    source = start({ send: (event, data, id) => write(`event: ${event}\nid: ${id}\ndata: ${data}\n\n`) });
  }

  /** Ends all streams, and each new one as soon as it is open. */
  end(): void {
    this.#ended = true;
    for (const end of this.#open) end();
  }
}
