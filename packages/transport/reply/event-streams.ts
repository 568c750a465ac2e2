import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { findRequestContext } from '../fastify.ts';
import { requestFields } from '../request-events.ts';
import { MAX_BEHIND, type ReplyBudget, takenBy, type Unread } from './reply-budget.ts';

/** A sign of life this often, in milliseconds, keeps proxies from closing a quiet stream and finds readers that are gone. */
export const KEEP_ALIVE = 12_000;

/** The header fields of an event stream. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // nginx would gather events otherwise.
  'x-accel-buffering': 'no',
} as const;

/** How a stream is opened. */
interface EventStreamOptions {
  /** Header fields beside those of every event stream and those of the reply. */
  readonly headers?: OutgoingHttpHeaders;
  /** Bytes that may wait for the reader when the next event comes; beyond it the reader is cut. */
  readonly maxBehind?: number;
  /** What is sent at the end, whether the source or a stop has ended it; default nothing. */
  end?(): string;
  /** Called once, when the stream has ended or the reader has left. */
  onEnd(): void;
}

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
  readonly #open = new Set<EventStream>();
  readonly #budget: ReplyBudget;
  #ended = false;

  constructor(budget: ReplyBudget) {
    this.#budget = budget;
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends all streams, and from now on each new one as soon as it is open. */
  end(): void {
    this.#ended = true;
    for (const stream of this.#open) stream.end();
  }

  /** Makes a reply an event stream. */
  open(reply: FastifyReply, { headers, onEnd, ...options }: EventStreamOptions): EventStream {
    reply.hijack();
    // A stream may last for hours.
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
    // A client that closes its half waits for the reply to a request, which a stream is not.
    const leave = () => raw.destroy();
    socket?.once('end', leave);
    raw.on('close', () => {
      socket?.off('end', leave);
      stream.end();
    });
    // The reader may have left before the stream was there.
    if (raw.destroyed) stream.end();
    // An event that is there already is still sent.
    else if (this.#ended) setImmediate(() => stream.end());
    return stream;
  }

  /** Sends the values of a source as server-sent events. Resolves once the stream has ended. */
  async send<T>(reply: FastifyReply, source: AsyncIterable<T>, format: EventFormat<T>): Promise<void> {
    const iterator = source[Symbol.asyncIterator]();
    const stream = this.open(reply, {
      end: format.end,
      onEnd() {
        // Does not wait for the source: that may be in the middle of something that takes forever.
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
          // A reader that catches up would keep all others waiting.
          await this.#budget.turns.next(0);
        }
      }
    } catch (error) {
      // The source gave this reader up, or failed: a cut connection says that events are missing.
      reply.log.warn({ ...requestFields(reply.request), err: error }, 'event stream cut');
      cutEndless(reply.raw);
    } finally {
      stream.end();
    }
  }
}

/** One open event stream. */
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
      // What is on its way already is a sign of life.
      if (!unread.isHeld) this.push(':\n\n');
    }, KEEP_ALIVE);
  }

  /** Whether it has neither ended nor lost its reader. */
  get isOpen(): boolean {
    return this.#isOpen && !this.#raw.destroyed;
  }

  /** Sends events at once. A reader that has left too many of those before, or for whose next one there is no room, is cut. */
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

  /** Sends events once there is room for them among all unread replies. Resolves once the system has taken them, or the reader has left. */
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

/** Replies that last for as long as their clients want: streams of events, and connections that are WebSockets now. */
const ENDLESS = new WeakSet<ServerResponse>();

/** Notes that the client of a reply may leave it at any time: nothing is missing then. */
export function noteEndless(response: ServerResponse): void {
  ENDLESS.add(response);
}

/** Cuts such a reply, whose client misses something. */
function cutEndless(response: ServerResponse): void {
  ENDLESS.delete(response);
  response.destroy();
}

/** Whether nothing is missing of a reply that has ended. */
export function isWhole(response: ServerResponse): boolean {
  return response.writableFinished || ENDLESS.has(response);
}
