import { IncomingMessage } from 'node:http';
import type { Forwarding } from '../connections/forwarding.ts';
import type { Exchange } from '../endpoint.ts';
import type { Arrival, BodyBudget, BodySender } from './body-budget.ts';
import { GrowingBuffer } from './growing-buffer.ts';

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

  get caller(): Exchange['caller'] {
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
