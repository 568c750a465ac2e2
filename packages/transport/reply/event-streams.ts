import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Reply } from '../endpoint.ts';
import { requestFields } from '../request-events.ts';
import { MAX_BEHIND, type ReplyBudget, takenBy, type Unread } from './reply-budget.ts';
import { replyBudgetOf } from './reply-pieces.ts';

/**
 * Interval of keep-alive comments, in milliseconds. They keep proxies from closing a quiet stream and detect
 * disconnected readers.
 */
export const KEEP_ALIVE = 12_000;

/** How the values of a source are sent as server-sent events. */
interface EventFormat<T> {
  /** Sent before the first event; default nothing. */
  readonly begin?: string;
  /** Returns the events of a value. */
  text(value: T): string;
  /** Returns the text sent at the end, whether the source ended or the server stops; default none. */
  end?(): string;
  /**
   * Whether the source waits for a slow reader, for sources that hold no resources meanwhile. Otherwise a
   * slow reader is disconnected. Default false.
   */
  readonly waits?: boolean;
  /** Maximum unread bytes when the next event is sent; a reader with more is disconnected. */
  readonly maxBehind?: number;
}

/** A reply body of events that lasts until its source ends, its client leaves or the server stops. */
export class EventStream<T = unknown> {
  readonly source: AsyncIterator<T>;
  readonly format: EventFormat<T>;

  constructor(source: AsyncIterable<T>, format: EventFormat<T>) {
    this.source = source[Symbol.asyncIterator]();
    this.format = format;
  }

  /** Ends the source. Does not wait for it: it may never finish its current step. */
  drop(): void {
    Promise.resolve(this.source.return?.()).catch(() => {});
  }
}

/** A reply with server-sent events; `headers` are added to those of every event stream. */
export function eventReply(body: Reply['body'], headers?: Reply['headers']): Reply {
  return {
    status: 200,
    type: 'text/event-stream; charset=utf-8',
    // The second keeps nginx from buffering events.
    headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no', ...headers },
    body,
  };
}

const STREAMS = Symbol('portico.eventStreams');

/** The event streams of a Fastify instance or its enclosing one; creates them if there are none. */
export function eventStreamsOf(app: FastifyInstance): EventStreams {
  const known = (app as { [STREAMS]?: EventStreams })[STREAMS];
  if (known !== undefined) return known;
  const streams = new EventStreams(replyBudgetOf(app));
  app.decorate(STREAMS, streams);
  app.addHook('preClose', (done) => {
    streams.end();
    done();
  });
  return streams;
}

/** The open event streams of an application, which end when it closes. */
class EventStreams {
  readonly #open = new Set<OpenStream>();
  readonly #budget: ReplyBudget;
  #hasEnded = false;

  constructor(budget: ReplyBudget) {
    this.#budget = budget;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends all streams, and from now on each new one as soon as it is open. */
  end(): void {
    this.#hasEnded = true;
    for (const stream of this.#open) stream.end();
  }

  /** Sends a stream to a hijacked request, with the headers set so far. */
  open(reply: FastifyReply, stream: EventStream): void {
    const opened: OpenStream = new OpenStream(reply, stream, this.#budget, () => this.#open.delete(opened));
    this.#open.add(opened);
    void opened.run();
    // An event that is already available is still sent.
    if (this.#hasEnded) setImmediate(() => opened.end());
  }
}

/** An event stream that is being sent. */
class OpenStream {
  readonly #raw: ServerResponse;
  readonly #stream: EventStream;
  readonly #budget: ReplyBudget;
  readonly #unread: Unread;
  readonly #keepAlive: NodeJS.Timeout;
  readonly #onEnd: () => void;
  readonly #warn: (error: unknown) => void;
  #isOpen = true;

  constructor(reply: FastifyReply, stream: EventStream, budget: ReplyBudget, onEnd: () => void) {
    const { raw, request } = reply;
    const { socket } = raw;
    this.#raw = raw;
    this.#stream = stream;
    this.#budget = budget;
    this.#onEnd = onEnd;
    this.#warn = (error) => reply.log.warn({ ...requestFields(request), err: error }, 'event stream cut');
    const unread = budget.open({
      onClose: (listener) => raw.once('close', listener),
      taken: () => takenBy(raw.socket),
      cut: () => cutEndless(raw),
    });
    this.#unread = unread;
    this.#keepAlive = setInterval(() => {
      // Unread bytes keep the connection alive.
      if (!unread.isHeld) this.#push(':\n\n');
    }, KEEP_ALIVE);
    raw.writeHead(reply.statusCode, reply.getHeaders() as Readonly<Record<string, string>>);
    raw.flushHeaders();
    noteEndless(raw);
    // A client that half-closes is waiting for the reply to an ordinary request; for a stream it means that
    // it has left.
    const leave = () => raw.destroy();
    socket?.once('end', leave);
    raw.on('close', () => {
      socket?.off('end', leave);
      this.end();
    });
  }

  /** Whether it has neither ended nor lost its reader. */
  get #isWanted(): boolean {
    return this.#isOpen && !this.#raw.destroyed;
  }

  /** Sends the events. Resolves once the stream has ended. */
  async run(): Promise<void> {
    const { source, format } = this.#stream;
    try {
      if (format.begin !== undefined) this.#push(format.begin);
      while (this.#isWanted) {
        const { value, done } = await source.next();
        if (done === true || !this.#isWanted) break;
        const text = format.text(value);
        if (format.waits !== true) this.#push(text);
        else {
          await this.#pass(text);
          // Otherwise a reader that catches up would keep all others waiting.
          await this.#budget.turns.next(0);
        }
      }
    } catch (error) {
      // The source failed or gave up on this reader; a cut connection shows that events are missing.
      this.#warn(error);
      cutEndless(this.#raw);
    } finally {
      this.end();
    }
  }

  /** Ends the stream. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearInterval(this.#keepAlive);
    this.#onEnd();
    this.#stream.drop();
    if (!this.#raw.destroyed) this.#raw.end(this.#stream.format.end?.() ?? '');
  }

  /**
   * Sends events immediately. Disconnects a reader that has too many unread bytes, or whose next events do
   * not fit into the budget.
   */
  #push(text: string): void {
    if (text === '' || !this.#isWanted) return;
    const bytes = Buffer.from(text);
    const { maxBehind = MAX_BEHIND } = this.#stream.format;
    if (this.#unread.isBehind(maxBehind) || !this.#unread.mayAdd(bytes.length)) {
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
  async #pass(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    await this.#unread.whenRoom(bytes.length);
    if (!this.#isWanted) return;
    this.#unread.hold(bytes.length);
    await new Promise<void>((resolve) => {
      this.#raw.write(bytes, () => resolve());
    });
    this.#unread.hold(0);
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
