import type { Socket } from 'node:net';
import { LARGE_REPLY } from '../body/reply-budget.ts';
import type { Connection, Leased } from '../connections/connection.ts';
import type { NodeReader } from './node-reader.ts';
import { type PlainRequest, PlainRequestReader } from './plain-request.ts';

/** What answers the plain requests of connections. */
export interface FastRouter<Route> {
  /** The route of a request that the fast path may answer. */
  find(request: PlainRequest): Route | undefined;
  /** Answers a request; `chunk` holds its bytes. Calls `connection.lease` first. */
  answer(connection: FastConnection<Route>, request: PlainRequest, route: Route, chunk: Buffer): void;
}

/** How long the rest of a body may take before Node's parser gets the request, in milliseconds. */
const BODY_TIMEOUT = 20;
/** A larger request that comes in pieces is left to Node's parser, in bytes. */
const MAX_PIECES = 16 * 1024;

/**
 * A connection whose bytes the fast path sees before Node's parser. As long as each request on it is plain, the fast
 * path knows where one ends, and either can answer the next. Once a request is not plain, or arrives while another is
 * being answered, all bytes go to the parser for good.
 *
 * States: idle -> receiving (a body is incomplete) -> leased (being answered) -> idle; from each of them aside, which
 * is final.
 */
export class FastConnection<Route> {
  readonly #connection: Connection;
  readonly #reader: NodeReader;
  readonly #router: FastRouter<Route>;
  readonly #requestReader = new PlainRequestReader();
  /** Bytes of a body that the parser is still to get. */
  #unparsed = 0;
  /** A request whose body is incomplete, and its length when it is complete. */
  #received: { readonly chunk: Buffer; readonly length: number } | undefined;
  #bodyTimer: NodeJS.Timeout | undefined;
  #isAside = false;
  /** The client has closed its half behind the leased request. */
  #hasEnded = false;

  constructor(connection: Connection, reader: NodeReader, router: FastRouter<Route>) {
    this.#connection = connection;
    this.#reader = reader;
    this.#router = router;
    const { socket } = connection;
    // Node reads past all listeners until there is one that is not its own.
    socket.on('data', this.#read).off('data', reader.parse);
    socket.on('end', this.#end).off('end', reader.end);
    socket.once('close', () => {
      clearTimeout(this.#bodyTimer);
      this.#received = undefined;
    });
  }

  /** Whether the reply under way is the connection's last. */
  get isLast(): boolean {
    // What the parser has got since then is still to be answered.
    return (this.#hasEnded && !this.#isAside) || this.#connection.requestLimitReached;
  }

  get socket(): Socket {
    return this.#connection.socket;
  }

  /** Begins to answer a request. */
  lease(leased: Leased): void {
    this.#connection.lease(leased);
  }

  /** Gives the leased request to the parser after all. */
  handOver(chunk: Buffer): void {
    const { leased, socket } = this.#connection;
    // The parser of a destroyed connection serves another one.
    if (leased === undefined || socket.destroyed) return;
    // The parser has bytes already that came behind this request.
    if (this.#isAside) {
      this.cut();
      return;
    }
    this.#connection.handOver();
    this.#reader.parse(chunk);
    if (this.#hasEnded) this.#passEnd();
  }

  /**
   * Writes the reply to the leased request, and closes the connection behind it when that is the `last` one.
   * Calls `done` once the system has it; for a client that is gone nothing happens.
   */
  reply(head: string, body: string | Buffer, last: boolean, done: () => void): void {
    const { leased, socket } = this.#connection;
    if (leased === undefined || !socket.writable) return;
    if (typeof body === 'string' && body.length < LARGE_REPLY) {
      // A head is ASCII, and Latin-1 is what a text of one byte per character is already.
      socket.write(head + body, Buffer.byteLength(body) === body.length ? 'latin1' : 'utf8');
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      // While a client does not read it, Node would hold a text twice.
      socket.write(typeof body === 'string' ? Buffer.from(body) : body);
      socket.uncork();
    }
    const sent = socket.writableLength === 0;
    const onSent = () => {
      done();
      this.#connection.release();
    };
    // Mostly the system takes it at once, and the stream would say so a tick later.
    if (!sent) {
      socket.write('', (error) => {
        if (!error) onSent();
      });
    }
    if (last) socket.destroySoon();
    if (sent && socket.errored === null) onSent();
  }

  /** Ends the connection without a reply. */
  cut(): void {
    this.#connection.socket.destroy();
  }

  readonly #read = (chunk: Buffer): void => {
    if (this.#connection.leased !== undefined) {
      // The server keeps what the parser reads from it waiting until the leased request is answered.
      this.#stepAside();
      this.#reader.parse(chunk);
    } else if (this.#unparsed > 0) {
      this.#unparsed -= chunk.length;
      if (this.#unparsed < 0) this.#stepAside();
      this.#reader.parse(chunk);
    } else {
      this.#receive(this.#received === undefined ? chunk : Buffer.concat([this.#received.chunk, chunk]));
    }
  };

  readonly #end = (): void => {
    // The parser refuses a request that ends too early.
    this.#giveUp();
    if (this.#connection.leased === undefined) {
      this.#passEnd();
      return;
    }
    // Node knows nothing of a leased request, and would close the connection before its reply.
    this.#hasEnded = true;
    if (this.#isAside) this.#connection.whenFree(() => this.#passEnd());
  };

  #passEnd(): void {
    const { socket } = this.#connection;
    // The parser of a destroyed connection, or of one that is no longer HTTP, serves another one.
    const listeners: readonly unknown[] = socket.listeners('data');
    if (!socket.destroyed && (!this.#isAside || listeners.includes(this.#reader.parse))) this.#reader.end();
  }

  #receive(chunk: Buffer): void {
    this.#received = undefined;
    const request = this.#requestReader.read(chunk);
    if (request === undefined) {
      this.#stepAside();
      this.#reader.parse(chunk);
      return;
    }
    const { length } = request;
    const route = this.#isFree() ? this.#router.find(request) : undefined;
    const isComplete = length === chunk.length;
    if (route !== undefined && !isComplete && request.method !== 'GET' && length <= MAX_PIECES) {
      // Many clients send head and body apart.
      this.#received = { chunk, length };
      this.#bodyTimer ??= setTimeout(this.#giveUp, BODY_TIMEOUT);
      return;
    }
    if (this.#bodyTimer !== undefined) {
      clearTimeout(this.#bodyTimer);
      this.#bodyTimer = undefined;
    }
    if (route !== undefined && isComplete) {
      this.#router.answer(this, request, route, chunk);
    } else {
      this.#unparsed = length - chunk.length;
      this.#reader.parse(chunk);
    }
  }

  /** Leaves an incomplete request to the parser. */
  readonly #giveUp = (): void => {
    this.#bodyTimer = undefined;
    const received = this.#received;
    if (received === undefined) return;
    this.#received = undefined;
    this.#unparsed = received.length - received.chunk.length;
    this.#reader.parse(received.chunk);
  };

  /** Until the parser had a whole request it takes the connection for one that is late with its first. */
  #isFree(): boolean {
    const { isProven, reply, socket } = this.#connection;
    return isProven && reply === undefined && socket.writable;
  }

  #stepAside(): void {
    this.#isAside = true;
    const { socket } = this.#connection;
    socket.on('data', this.#reader.parse).off('data', this.#read);
  }
}
