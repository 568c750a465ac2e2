import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { findRequestContext } from '../fastify.ts';
import { requestFields } from '../request-events.ts';
import { MAX_BEHIND, type ReplyBudget, takenBy, type Unread } from './reply-budget.ts';

/**
 * Interval of keep-alive comments, in milliseconds. They keep proxies from closing a quiet stream and detect
 * disconnected readers.
 */
export const KEEP_ALIVE = 12_000;

/** The header fields of an event stream. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Otherwise nginx buffers events.
  'x-accel-buffering': 'no',
} as const;

/** The options of a stream. */
interface EventStreamOptions {
  /** Headers in addition to those of the reply and of every event stream. */
  readonly headers?: OutgoingHttpHeaders;
  /** Maximum unread bytes when the next event is sent; a reader with more is disconnected. */
  readonly maxBehind?: number;
  /** Returns the text sent at the end, whether the source ended or the server stops; default none. */
  end?(): string;
  /** Called once, when the stream has ended or the reader has disconnected. */
  onEnd(): void;
}

/** How the values of a source are sent as server-sent events. */
export interface EventFormat<T> {
  /** Sent before the first event; default nothing. */
  readonly begin?: string;
  /** Returns the events of a value. */
  text(value: T): string;
  /** Returns the text sent at the end, whether the source ended or the server stops. */
  end(): string;
  /**
   * Whether the source waits for a slow reader, for sources that hold no resources meanwhile. Otherwise a
   * slow reader is disconnected. Default false.
   */
  readonly waits?: boolean;
}

/** The event streams of a door, so that a stop can end them. */
export class EventStreams {
  readonly #open = new Set<EventStream>();
  readonly #budget: ReplyBudget;
  #ended = false;

  constructor(budget: ReplyBudget) {
    this.#budget = budget;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends all streams, and from now on each new one as soon as it is open. */
  end(): void {
    this.#ended = true;
    for (const stream of this.#open) stream.end();
  }

  /** Turns a reply into an event stream. */
  open(reply: FastifyReply, { headers, onEnd, ...options }: EventStreamOptions): EventStream {
    reply.hijack();
    // A stream may last for hours, so free the body now.
    findRequestContext(reply.request)?.dropBody();
    const { raw } = reply;
    const { socket } = raw;
    const unread = this.#budget.open({
      onClose: (listener) => raw.once('close', listener),
      taken: () => takenBy(raw.socket),
      cut: () => cutEndless(raw),
    });
    const stream = new EventStream(raw, unread, {
      ...options,
      onEnd: () => {
        this.#open.delete(stream);
        onEnd();
      },
    });
    this.#open.add(stream);
    raw.writeHead(200, {
      ...(reply.getHeaders() as OutgoingHttpHeaders),
      ...EVENT_STREAM_HEADERS,
      ...headers,
    });
    raw.flushHeaders();
    noteEndless(raw);
    // A client that half-closes is waiting for the reply to an ordinary request; for a stream it means that
    // it has left.
    const leave = () => raw.destroy();
    socket?.once('end', leave);
    raw.on('close', () => {
      socket?.off('end', leave);
      stream.end();
    });
    // The reader may have disconnected before the stream was opened.
    if (raw.destroyed) stream.end();
    // An event that is already available is still sent.
    else if (this.#ended) setImmediate(() => stream.end());
    return stream;
  }

  /** Sends the values of a source as server-sent events. Resolves once the stream has ended. */
  async send<T>(reply: FastifyReply, source: AsyncIterable<T>, format: EventFormat<T>): Promise<void> {
    const iterator = source[Symbol.asyncIterator]();
    const stream = this.open(reply, {
      end: format.end,
      onEnd() {
        // Do not wait for the source: it may never finish its current step.
        Promise.resolve(iterator.return?.()).catch(() => {});
      },
    });
    try {
      if (format.begin !== undefined) stream.push(format.begin);
      while (stream.isOpen) {
        const { value, done } = await iterator.next();
        if (done === true) break;
        if (!stream.isOpen) break;
        const text = format.text(value);
        if (format.waits !== true) stream.push(text);
        else {
          await stream.pass(text);
          // Otherwise a reader that catches up would keep all others waiting.
          await this.#budget.turns.next(0);
        }
      }
    } catch (error) {
      // The source failed or gave up on this reader; a cut connection shows that events are missing.
      reply.log.warn({ ...requestFields(reply.request), err: error }, 'event stream cut');
      cutEndless(reply.raw);
    } finally {
      stream.end();
    }
  }
}

/** An open event stream. */
class EventStream {
  readonly #raw: ServerResponse;
  readonly #unread: Unread;
  readonly #options: Omit<EventStreamOptions, 'headers'>;
  readonly #keepAlive: NodeJS.Timeout;
  #isOpen = true;

  constructor(raw: ServerResponse, unread: Unread, options: Omit<EventStreamOptions, 'headers'>) {
    this.#raw = raw;
    this.#unread = unread;
    this.#options = options;
    this.#keepAlive = setInterval(() => {
      // Unread bytes keep the connection alive.
      if (!unread.isHeld) this.push(':\n\n');
    }, KEEP_ALIVE);
  }

  /** Whether it has neither ended nor lost its reader. */
  get isOpen(): boolean {
    return this.#isOpen && !this.#raw.destroyed;
  }

  /**
   * Sends events immediately. Disconnects a reader that has too many unread bytes, or whose next events do
   * not fit into the budget.
   */
  push(text: string): void {
    if (!this.isOpen) return;
    const bytes = Buffer.from(text);
    if (this.#unread.isBehind(this.#options.maxBehind ?? MAX_BEHIND) || !this.#unread.mayAdd(bytes.length)) {
      cutEndless(this.#raw);
      return;
    }
    this.#unread.add(bytes.length);
    this.#raw.write(bytes, () => this.#unread.remove(bytes.length));
  }

  /**
   * Sends events once they fit into the budget. Resolves once the system has taken them or the reader has
   * disconnected.
   */
  async pass(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    await this.#unread.whenRoom(bytes.length);
    if (!this.isOpen) return;
    this.#unread.hold(bytes.length);
    await new Promise<void>((resolve) => {
      this.#raw.write(bytes, () => resolve());
    });
    this.#unread.hold(0);
  }

  /** Ends the stream. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearInterval(this.#keepAlive);
    this.#options.onEnd();
    if (!this.#raw.destroyed) this.#raw.end(this.#options.end?.() ?? '');
  }
}

/** Replies that last until the client leaves: event streams and connections that became WebSockets. */
const ENDLESS = new WeakSet<ServerResponse>();

/** Marks a reply that its client may leave at any time without missing anything. */
export function noteEndless(response: ServerResponse): void {
  ENDLESS.add(response);
}

/** Cuts such a reply as incomplete. */
function cutEndless(response: ServerResponse): void {
  ENDLESS.delete(response);
  response.destroy();
}

/** Whether an ended reply is complete. */
export function isWhole(response: ServerResponse): boolean {
  return response.writableFinished || ENDLESS.has(response);
}
