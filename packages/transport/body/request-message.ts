import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { RequestContext } from '../endpoint.ts';
import type { Forwarding } from '../hosts.ts';
import type { Arrival, BodyBudget, BodySender } from './body-budget.ts';

/** Bytes of a body that are read from a connection ahead of their reader. */
const READ_AHEAD = 16 * 1024;
/** Pieces behind which a connection waits for its turn: Node would read two megabytes of them before anything else. */
const PIECES_PER_TURN = 500;

/**
 * The class of a listener's requests. What has come of a body and nobody has read yet is one buffer that counts into a
 * budget: Node would keep a list of the pieces, with some 250 bytes for each, however small it is.
 */
export function requestMessage(budget: BodyBudget, clientOf: Forwarding['client']): typeof IncomingMessage {
  const turns = new Turns();
  return class RequestMessage extends IncomingMessage {
    #unread: GrowingBuffer | undefined;
    #arrival: Arrival | undefined;
    #received = 0;
    /** How many pieces have come since the connection was read. */
    #pieces = 0;
    #isWaiting = false;
    /** Whether Node has asked for the next piece. It asks ahead of the reader, so that alone does not make it wanted. */
    #isAsked = false;

    /** Node's parser calls it with each piece, and with null at the end. */
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
      // The reader counts what it takes.
      if (size !== 0 && this.#unread === undefined) this.#forget();
      const bytes = super.read(size);
      if (this.#isWanted) this.#pass();
      return bytes;
    }

    override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
      this.#forget();
      super._destroy(error, done);
    }

    /** Whether the reader has taken everything and waits. */
    get #isWanted(): boolean {
      return this.#isAsked && this.readableLength === 0;
    }

    /** Keeps a piece that nobody waits for; false when the connection is to be read no further. */
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

    /** Counts more memory; false where there is no room, and then the connection is closed. */
    #grow(arrival: Arrival, size: number): boolean {
      try {
        budget.grow(arrival, size, this.#received);
        return true;
      } catch {
        this.socket.destroy();
        return false;
      }
    }

    /** Gives what was kept to Node, hence to a reader that waits; without one it still counts. */
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

/** The client of a request that nobody has yet, or that whoever has it does not read. */
class Sender implements BodySender {
  readonly #request: IncomingMessage;
  readonly #clientOf: Forwarding['client'];

  constructor(request: IncomingMessage, clientOf: Forwarding['client']) {
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

/** Has one thing happen per turn of the event loop. */
class Turns {
  readonly #waiting: (() => void)[] = [];

  add(next: () => void): void {
    if (this.#waiting.push(next) === 1) setImmediate(() => this.#take());
  }

  #take(): void {
    if (this.#waiting.length > 1) setImmediate(() => this.#take());
    this.#waiting.shift()?.();
  }
}

/** The requests whose bodies may take any time, as long as something moves. */
const streamed = new WeakSet<object>();

/** How long a client may go on sending what nobody wants any more once it has its reply, in milliseconds. */
const LINGER = 2_000;

/** Whether the body of a request is read as it comes. */
export function isStreamed(request: object): boolean {
  return streamed.has(request);
}

/**
 * Notes that a body is read as it comes. Behind the reply what is left of it is read for a moment, because a client that
 * is cut while it sends may lose the reply; then its connection is closed.
 */
export function streamBody(request: IncomingMessage, reply: NodeJS.EventEmitter, body: Readable): void {
  streamed.add(request);
  // Whoever reads the body gets its errors too.
  body.on('error', () => {});
  reply.once('close', () => {
    if (request.complete || request.socket.destroyed) return;
    body.resume();
    const timer = setTimeout(() => request.socket.destroy(), LINGER).unref();
    body.once('close', () => clearTimeout(timer)).once('end', () => clearTimeout(timer));
  });
}

const NOTHING = Buffer.alloc(0);

/**
 * Bytes that come in pieces, in one buffer that doubles when it is full. A list of the pieces would take a few hundred
 * bytes for each of them, however small it is.
 */
export class GrowingBuffer {
  #bytes: Buffer<ArrayBuffer> = NOTHING;
  #length = 0;
  readonly #most: number;

  /** `most`: the length that is not exceeded, so that nothing is allocated beyond it; default unknown. */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get length(): number {
    return this.#length;
  }

  /** The memory that it takes with so many more bytes. */
  sizeWith(more: number): number {
    const length = this.#length + more;
    if (length <= this.#bytes.length) return this.#bytes.length;
    return Math.max(length, Math.min(2 * this.#bytes.length, this.#most));
  }

  append(piece: Uint8Array): void {
    const size = this.sizeWith(piece.length);
    // The old memory is free at once, not when garbage is collected.
    if (size > this.#bytes.length) {
      const memory = this.#length === 0 ? new ArrayBuffer(size) : this.#bytes.buffer.transfer(size);
      this.#bytes = Buffer.from(memory);
    }
    this.#bytes.set(piece, this.#length);
    this.#length += piece.length;
  }

  /** Appends a piece that nobody else has: the first one is not copied where it has its memory for itself. */
  adopt(piece: Buffer<ArrayBuffer>): void {
    if (this.#length > 0 || piece.length < piece.buffer.byteLength) this.append(piece);
    else {
      this.#bytes = piece;
      this.#length = piece.length;
    }
  }

  /** The bytes; the buffer is empty afterwards. */
  take(): Buffer {
    const isFull = this.#length === this.#bytes.length;
    const bytes = isFull ? this.#bytes : this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return bytes;
  }
}
