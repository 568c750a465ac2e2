import { type IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import type { RequestContext } from '../endpoint.ts';
import { bodyTooLarge, HttpProblem, reasonPhrase } from '../problem.ts';
import { type Arrival, type BodyBudget, type BodySender, busy } from './body-budget.ts';

/** Receives the whole body of a request, or why there is none. */
export type Done = (error: Error | null, body?: Buffer) => void;

/** The request of a body. */
interface BodyRequest extends Pick<RequestContext, 'caller' | 'client' | 'headers'> {
  readonly request: Pick<FastifyRequest, 'raw' | 'routeOptions'>;
  /** Calls `release` once the body can be freed. */
  holdBody(release: () => void): void;
}

/** `receivedEncodedLength` is Fastify's count of bytes before a user's `preParsing` hook decoded them. */
type Payload = Readable & { readonly receivedEncodedLength?: number };

/** A body that is arriving in pieces. */
interface Begun {
  readonly arrival: Arrival;
  readonly pieces: GrowingBuffer;
}

/** Reads the body of one request. */
export class BodyReader implements BodySender {
  readonly #ctx: BodyRequest;
  readonly #payload: Payload;
  readonly #budget: BodyBudget;
  readonly #done: Done;
  readonly #limit: number;
  /** The Content-Length; NaN if there is none. */
  readonly #announced: number;
  /** Whether the body is read as sent, without a decoder. */
  readonly #isRaw: boolean;
  /** A body that arrived in one piece. */
  #whole: Buffer | undefined;
  #begun: Begun | undefined;
  #received = 0;

  constructor(ctx: BodyRequest, payload: Payload, budget: BodyBudget, done: Done) {
    this.#ctx = ctx;
    this.#payload = payload;
    this.#budget = budget;
    this.#done = done;
    this.#limit = ctx.request.routeOptions.bodyLimit;
    this.#announced = Number(ctx.headers['content-length']);
    this.#isRaw = payload === ctx.request.raw;
  }

  get caller(): RequestContext['caller'] {
    return this.#ctx.caller;
  }

  get client(): string {
    return this.#ctx.client;
  }

  read(): void {
    if (this.#announced > this.#limit) {
      this.#done(bodyTooLarge());
      return;
    }
    this.#payload.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError);
    this.#payload.resume();
  }

  refuse(problem: HttpProblem): void {
    this.#stop();
    // A decoder may still fail on the rest of the body.
    this.#payload.on('error', () => {});
    if (this.#begun !== undefined) this.#budget.close(this.#begun.arrival);
    this.#begun = undefined;
    this.#done(problem);
  }

  readonly #onData = (data: Buffer | string): void => {
    const piece = typeof data === 'string' ? Buffer.from(data) : data;
    this.#received += piece.length;
    try {
      const { receivedEncodedLength = 0 } = this.#payload;
      if (Math.max(this.#received, receivedEncodedLength) > this.#limit) throw bodyTooLarge();
      if (piece.length === this.#announced && this.#isRaw) this.#takeWhole(piece);
      else this.#append(piece);
    } catch (error) {
      this.refuse(error as HttpProblem);
    }
  };

  #takeWhole(body: Buffer): void {
    if (!this.#budget.take(body.length, this)) throw busy();
    this.#ctx.holdBody(() => this.#budget.release(body.length));
    this.#whole = body;
  }

  #append(piece: Buffer): void {
    const { arrival, pieces } = this.#begun ?? this.#begin();
    this.#budget.grow(arrival, pieces.sizeWith(piece.length), this.#received);
    pieces.append(piece);
  }

  #begin(): Begun {
    const arrival = this.#budget.open(this);
    const length = this.#isRaw && this.#announced > 0 ? this.#announced : this.#limit;
    this.#begun = { arrival, pieces: new GrowingBuffer(length) };
    this.#ctx.holdBody(() => this.#budget.close(arrival));
    return this.#begun;
  }

  readonly #onEnd = (): void => {
    this.#stop();
    if (this.#begun !== undefined) this.#budget.complete(this.#begun.arrival);
    const encoded = this.#payload.receivedEncodedLength || this.#received;
    if (!Number.isNaN(this.#announced) && encoded !== this.#announced) {
      // Node's parser enforces Content-Length; a decoder may not report how many bytes it read.
      this.refuse(new HttpProblem(400, 'BAD_REQUEST', reasonPhrase(400)));
    } else this.#done(null, this.#whole ?? this.#begun?.pieces.take() ?? Buffer.alloc(0));
  };

  readonly #onError = (cause: Error): void => {
    this.refuse(new HttpProblem(400, 'BAD_REQUEST', reasonPhrase(400), { cause }));
  };

  #stop(): void {
    this.#payload.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError);
  }
}

/** Bytes of a body that are read ahead of the application. */
const READ_AHEAD = 16 * 1024;
/**
 * Pieces after which a connection waits for its turn: Node would otherwise read two megabytes of them at
 * once.
 */
const PIECES_PER_TURN = 500;

/** Returns the address of a client, from its socket's address and the headers of its request. */
type ClientOf = (remote: string | undefined, headers: IncomingHttpHeaders) => string;

/**
 * The IncomingMessage class of a listener. Unread body bytes are kept in one buffer that counts towards a
 * budget; Node would keep a list of pieces, at about 250 bytes for each, however small.
 */
export function requestMessage(budget: BodyBudget, clientOf: ClientOf): typeof IncomingMessage {
  const turns = new TurnQueue();
  return class RequestMessage extends IncomingMessage {
    #unread: GrowingBuffer | undefined;
    #arrival: Arrival | undefined;
    #received = 0;
    /** Pieces received since the connection was last read. */
    #pieces = 0;
    #isWaiting = false;
    /**
     * Whether Node has asked for the next piece. Node asks ahead of the reader, so this alone does not mean
     * that a piece is wanted.
     */
    #isAsked = false;

    /** Node's parser calls this with each piece, and with null at the end. */
    override push(piece: Buffer<ArrayBuffer> | null, encoding?: BufferEncoding): boolean {
      this.#pieces++;
      if (piece === null) this.#pass();
      else if (!this.#isWanted && !this.destroyed) return this.#keep(piece);
      this.#isAsked = false;
      return super.push(piece, encoding);
    }

    override _read(size: number): void {
      this.#isAsked = true;
      if (this.#isWanted) this.#pass();
      if (this.#isWaiting) return;
      if (this.#pieces < PIECES_PER_TURN) {
        this.#pieces = 0;
        super._read(size);
        return;
      }
      this.#isWaiting = true;
      turns.add(() => {
        this.#isWaiting = false;
        this.#pieces = 0;
        super._read(size);
      });
    }

    override read(size?: number): unknown {
      // From here on, the reader counts the bytes that it takes.
      if (size !== 0 && this.#unread === undefined) this.#forget();
      const bytes = super.read(size);
      if (this.#isWanted) this.#pass();
      return bytes;
    }

    override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
      this.#forget();
      super._destroy(error, done);
    }

    /** Whether the reader has taken everything and waits for more. */
    get #isWanted(): boolean {
      return this.#isAsked && this.readableLength === 0;
    }

    /** Keeps a piece that the reader does not want yet; false if the connection must not be read further. */
    #keep(piece: Buffer<ArrayBuffer>): boolean {
      this.#arrival ??= budget.open(new Sender(this, clientOf));
      this.#received += piece.length;
      const unread = this.#unread ?? new GrowingBuffer();
      const size = unread.sizeWith(piece.length);
      if (size > this.#arrival.held && !this.#grow(this.#arrival, size)) return false;
      unread.adopt(piece);
      this.#unread = unread;
      return unread.length < READ_AHEAD && this.#pieces < PIECES_PER_TURN;
    }

    /** Counts more memory; false if the budget is full, in which case the connection is closed. */
    #grow(arrival: Arrival, size: number): boolean {
      try {
        budget.grow(arrival, size, this.#received);
        return true;
      } catch {
        this.socket.destroy();
        return false;
      }
    }

    /** Passes the kept bytes to Node and so to a waiting reader; without one they still count. */
    #pass(): void {
      if (this.#unread === undefined) return;
      const bytes = this.#unread.take();
      this.#unread = undefined;
      if (this.#isAsked) this.#forget();
      this.#isAsked = false;
      super.push(bytes);
    }

    #forget(): void {
      this.#unread = undefined;
      if (this.#arrival !== undefined) budget.close(this.#arrival);
      this.#arrival = undefined;
    }
  } as typeof IncomingMessage;
}

/** The client of a request whose body no reader has asked for. */
class Sender implements BodySender {
  readonly #request: IncomingMessage;
  readonly #clientOf: ClientOf;

  constructor(request: IncomingMessage, clientOf: ClientOf) {
    this.#request = request;
    this.#clientOf = clientOf;
  }

  get caller(): RequestContext['caller'] {
    return undefined;
  }

  get client(): string {
    const { socket, headers } = this.#request;
    return this.#clientOf(socket.remoteAddress, headers);
  }

  refuse(): void {
    this.#request.socket.destroy();
  }
}

/** Runs one callback per turn of the event loop. */
class TurnQueue {
  readonly #waiting: (() => void)[] = [];

  add(next: () => void): void {
    if (this.#waiting.push(next) === 1) setImmediate(() => this.#take());
  }

  #take(): void {
    if (this.#waiting.length > 1) setImmediate(() => this.#take());
    this.#waiting.shift()?.();
  }
}

/** Requests whose bodies may take any time while data keeps arriving. */
const streamed = new WeakSet<object>();

/** How long the rest of an unwanted body is read after the reply, in milliseconds. */
const DRAIN_TIMEOUT = 2_000;

/** Whether the body of a request is streamed. */
export function isStreamed(request: object): boolean {
  return streamed.has(request);
}

/**
 * Marks a body as streamed. After the reply, the rest of the body is read and discarded for a moment, because
 * a client may lose the reply if the connection is closed while it is sending; then the connection is closed.
 */
export function streamBody(request: IncomingMessage, reply: NodeJS.EventEmitter, body: Readable): void {
  streamed.add(request);
  // The reader of the body handles its errors.
  body.on('error', () => {});
  reply.once('close', () => {
    if (request.complete || request.socket.destroyed) return;
    body.resume();
    const timer = setTimeout(() => request.socket.destroy(), DRAIN_TIMEOUT).unref();
    body.once('close', () => clearTimeout(timer)).once('end', () => clearTimeout(timer));
  });
}

const NOTHING = Buffer.alloc(0);

/**
 * Collects bytes in one buffer that doubles when it is full. A list of pieces would take a few hundred bytes
 * for each, however small.
 */
export class GrowingBuffer {
  #bytes: Buffer<ArrayBuffer> = NOTHING;
  #length = 0;
  readonly #most: number;

  /** `most` is the maximum length, beyond which nothing is allocated; default unlimited. */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get length(): number {
    return this.#length;
  }

  /** The memory needed after appending `more` bytes. */
  sizeWith(more: number): number {
    const length = this.#length + more;
    if (length <= this.#bytes.length) return this.#bytes.length;
    return Math.max(length, Math.min(2 * this.#bytes.length, this.#most));
  }

  append(piece: Uint8Array): void {
    const size = this.sizeWith(piece.length);
    // `transfer` frees the old memory at once, without waiting for garbage collection.
    if (size > this.#bytes.length) {
      const memory = this.#length === 0 ? new ArrayBuffer(size) : this.#bytes.buffer.transfer(size);
      this.#bytes = Buffer.from(memory);
    }
    this.#bytes.set(piece, this.#length);
    this.#length += piece.length;
  }

  /** Appends a piece that the caller gives up: the first one is not copied if it owns its memory. */
  adopt(piece: Buffer<ArrayBuffer>): void {
    if (this.#length > 0 || piece.length < piece.buffer.byteLength) this.append(piece);
    else {
      this.#bytes = piece;
      this.#length = piece.length;
    }
  }

  /** Returns the bytes and empties the buffer. */
  take(): Buffer {
    const isFull = this.#length === this.#bytes.length;
    const bytes = isFull ? this.#bytes : this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return bytes;
  }
}
