import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { MaybePromise } from '../../../src/core/scheduler.ts';
import { requestFields } from '../../../src/core/trace.ts';
import type { Reply } from '../endpoint.ts';
import { LIMITS } from '../server/limits.ts';
import { LARGE_REPLY, ReplyBudget, type SentReply, takenBy, type Unread } from './reply-budget.ts';

/** A reply body that is produced while it is sent: each piece is text or bytes of about `PIECE_BYTES`. */
export type Pieces = AsyncIterable<string | Uint8Array>;

/** Target size of a piece, in bytes. */
export const PIECE_BYTES = 64 * 1024;

/**
 * Number of pieces that a reply sends before other replies get a turn: each turn of the event loop has a
 * cost.
 */
export const TURN_PIECES = 4;

/** A reply that is sent in pieces. */
export interface PiecewiseReply extends SentReply {
  /** Returns once the system has taken all written bytes, or the client has disconnected. */
  whenTaken(): MaybePromise<void>;
  /** Called if the source fails after the first piece, when the client can no longer be told. */
  onFailure(error: unknown): void;
}

/** The body of a reply to HEAD if the reply to GET would be in pieces. */
export const NO_PIECES: Pieces = { async *[Symbol.asyncIterator]() {} };

export function isPieces(body: Reply['body']): body is Pieces {
  return typeof body === 'object' && Symbol.asyncIterator in body;
}

/**
 * Yields the pieces of a reply as bytes. The source is asked for the next one once the system has taken the
 * previous one and the budget has capacity, so a reply holds one piece at most; after `TURN_PIECES`, other
 * replies get their turns. Throws HttpProblem before the first piece if it does not fit. Ends early
 * if the client disconnects.
 */
export async function* takenPieces(
  pieces: Pieces,
  reply: PiecewiseReply,
  budget: ReplyBudget,
): AsyncGenerator<Buffer, void> {
  const unread = budget.open(reply);
  const source = pieces[Symbol.asyncIterator]();
  let hasBegun = false;
  /** Pieces sent in this turn. */
  let sent = 0;
  try {
    unread.reserve(PIECE_BYTES);
    for (;;) {
      const { value, done } = await source.next();
      if (done === true || unread.isClosed) return;
      const bytes = typeof value === 'string' ? Buffer.from(value) : asBuffer(value);
      // An empty chunk would end a chunked reply.
      if (bytes.length > 0) {
        unread.hold(bytes.length);
        yield bytes;
        hasBegun = true;
        const taken = reply.whenTaken();
        if (taken !== undefined) {
          await taken;
          sent = TURN_PIECES;
        }
      }
      unread.hold(0);
      if (++sent >= TURN_PIECES) {
        await budget.turns.next(0);
        sent = 0;
      }
      await unread.whenRoom(PIECE_BYTES);
      if (unread.isClosed) return;
    }
  } catch (error) {
    if (hasBegun) reply.onFailure(error);
    throw error;
  } finally {
    unread.close();
    dropPieces(pieces, source);
  }
}

/** Ends a source whose remaining pieces are not needed. */
export function dropPieces(
  pieces: Pieces,
  source: AsyncIterator<unknown> = pieces[Symbol.asyncIterator](),
): void {
  // The iterator of a Readable that was not started would not destroy it.
  if (pieces instanceof Readable) pieces.destroy();
  else Promise.resolve(source.return?.()).catch(() => {});
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The log message for a reply that cannot be completed. */
export const SOURCE_FAILED = 'reply cut: its source failed';

/** Streams that already count towards a budget. */
const COUNTED = new WeakSet<object>();

/** Counts the replies of a Fastify instance until their clients have read them. */
export function limitUnread(app: FastifyInstance, budget: ReplyBudget): void {
  budget.attach(app);
  app.addHook('onSend', (_request, reply, payload, done) => {
    let counted: unknown;
    try {
      counted = countedPayload(payload, reply, budget);
    } catch (error) {
      return done(error as Error);
    }
    done(null, counted);
  });
}

function countedPayload(payload: unknown, reply: FastifyReply, budget: ReplyBudget): unknown {
  if (payload instanceof Readable) return COUNTED.has(payload) ? payload : readablePieces(payload, reply);
  if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload;
  const length = Buffer.byteLength(payload);
  const sent = fastifyReply(reply);
  if (length >= LARGE_REPLY) {
    budget.take(length, sent);
    // Node would hold a string twice while the client does not read it.
    return typeof payload === 'string' ? Buffer.from(payload) : payload;
  }
  const { socket } = reply.raw;
  // Behind bytes that the client has not read, even a small reply waits.
  if (socket === null || socket.writableLength > 0) budget.open(sent).add(length);
  return payload;
}

/** The pieces of a reply as a stream for Fastify. */
export function readablePieces(pieces: Pieces, reply: FastifyReply): Readable {
  const budget = ReplyBudget.of(reply.server);
  // The stream reads one piece ahead, but the next one is not produced before the system has taken that.
  const readable = Readable.from(takenPieces(pieces, fastifyReply(reply), budget), {
    objectMode: false,
    highWaterMark: 1,
  });
  COUNTED.add(readable);
  return readable;
}

function fastifyReply({ raw, request, log }: FastifyReply): PiecewiseReply {
  const { socket } = request.raw;
  return {
    onClose: (listener) => raw.once('close', listener),
    taken: () => takenBy(socket),
    cut: () => raw.destroy(),
    whenTaken: () => whenTaken(raw, socket),
    onFailure: (error) => log.warn({ ...requestFields(request), err: error }, SOURCE_FAILED),
  };
}

/** Returns once the system has taken the written bytes of a Node reply, or the client has disconnected. */
function whenTaken(raw: ServerResponse, socket: IncomingMessage['socket']): MaybePromise<void> {
  // Injected requests have no real socket.
  if (raw.destroyed || raw.writableLength === 0 || !(socket instanceof Socket)) return undefined;
  return new Promise((resolve) => {
    const done = () => {
      raw.off('close', done);
      resolve();
    };
    raw.once('close', done);
    const ask = () => socket.write('', done);
    // A pipelined reply gets its socket later, and then writes what it has buffered.
    if (raw.socket === null) raw.once('socket', () => setImmediate(ask));
    else ask();
  });
}

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
  const streams = new EventStreams(ReplyBudget.of(app));
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
    }, LIMITS.signOfLife);
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
    if (this.#unread.isBehind(this.#stream.format.maxBehind) || !this.#unread.mayAdd(bytes.length)) {
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
