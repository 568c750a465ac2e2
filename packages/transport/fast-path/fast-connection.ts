import type { Socket } from 'node:net';
import type { MaybePromise } from '../../../src/core/maybe-promise.ts';
import type { BodyBudget } from '../body/body-budget.ts';
import { LARGE_REPLY } from '../reply/reply-budget.ts';
import type { Connection, InFlight } from '../server/connections.ts';
import { type PlainRequest, PlainRequestReader } from './plain-request.ts';

/** What answers the plain requests of connections. */
export interface FastRouter<Route> {
  /** What bounds the bodies that are held. */
  readonly bodyBudget: BodyBudget;
  /** The route of a request that the fast path may answer. */
  find(request: PlainRequest): Route | undefined;
  /** Answers a request; `chunk` holds its bytes. Calls `connection.lease` first. */
  answer(connection: FastConnection<Route>, request: PlainRequest, route: Route, chunk: Buffer): void;
}

/** A request whose body is incomplete. */
interface Begun {
  readonly request: PlainRequest;
  /** As long as all of it. */
  readonly bytes: Buffer;
  /** How much has come. */
  length: number;
}

/** How long the rest of a body may take before Node's parser gets the request, in milliseconds. */
const BODY_TIMEOUT = 20;
/** A larger request that comes in pieces is left to Node's parser, in bytes. */
const MAX_PIECES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * A connection whose bytes the fast path sees before Node's parser. As long as each request on it is plain, the fast
 * path knows where one ends, and either can answer the next. Once a request is not plain, or arrives while another is
 * being answered, all bytes go to the parser for good.
 *
 * States: idle -> begun (a body is incomplete) -> leased (being answered) -> idle; from each of them aside, which
 * is final.
 */
export class FastConnection<Route> {
  readonly #connection: Connection;
  readonly #reader: NodeReader;
  readonly #router: FastRouter<Route>;
  readonly #requestReader = new PlainRequestReader();
  /** Bytes of a body that the parser is still to get. */
  #unparsed = 0;
  #begun: Begun | undefined;
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
      this.#takeBegun();
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
  lease(leased: InFlight): void {
    this.#connection.lease(leased);
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
    this.#complete(last, done);
  }

  /** Writes one of the pieces of the reply to the leased request, the first one behind its head. */
  writePiece(head: string, piece: Buffer, isChunked: boolean): void {
    const { socket } = this.#connection;
    if (!socket.writable) return;
    socket.cork();
    socket.write(isChunked ? `${head}${piece.length.toString(16)}\r\n` : head, 'latin1');
    socket.write(piece);
    if (isChunked) socket.write('\r\n', 'latin1');
    socket.uncork();
  }

  /** Ends a reply in pieces; `end` is what is written behind them. */
  endPieces(end: string, last: boolean, done: () => void): void {
    const { leased, socket } = this.#connection;
    if (leased === undefined || !socket.writable) return;
    if (end !== '') socket.write(end, 'latin1');
    this.#complete(last, done);
  }

  /** Returns once the system has taken all that was written, or the client is gone. */
  whenTaken(): MaybePromise<void> {
    const { socket } = this.#connection;
    if (socket.writableLength === 0) return undefined;
    return new Promise((resolve) => socket.write('', () => resolve()));
  }

  #complete(last: boolean, done: () => void): void {
    const { socket } = this.#connection;
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
    } else if (this.#begun === undefined) this.#receive(chunk);
    else this.#receiveMore(this.#begun, chunk);
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
    const request = this.#requestReader.read(chunk);
    if (request === undefined) {
      this.#stepAside();
      this.#reader.parse(chunk);
      return;
    }
    const { length } = request;
    const route = this.#isFree() ? this.#router.find(request) : undefined;
    if (route === undefined) this.#parse(chunk, length);
    else if (length === chunk.length) this.#router.answer(this, request, route, chunk);
    else if (request.method === 'GET' || length > MAX_PIECES || !this.#begin(request, chunk)) {
      this.#parse(chunk, length);
    }
  }

  /** Waits for the rest of a body: many clients send head and body apart. False where there is no room for it. */
  #begin(request: PlainRequest, chunk: Buffer): boolean {
    const { length } = request;
    const client = this.socket.remoteAddress ?? '';
    if (!this.#router.bodyBudget.take(length, { caller: undefined, client })) return false;
    const bytes = Buffer.allocUnsafeSlow(length);
    bytes.set(chunk);
    this.#begun = { request, bytes, length: chunk.length };
    this.#bodyTimer = setTimeout(this.#giveUp, BODY_TIMEOUT);
    return true;
  }

  #receiveMore(begun: Begun, chunk: Buffer): void {
    const { request, bytes } = begun;
    if (begun.length + chunk.length > request.length) {
      const all = Buffer.concat([this.#takeBegun(), chunk]);
      this.#stepAside();
      this.#reader.parse(all);
      return;
    }
    bytes.set(chunk, begun.length);
    begun.length += chunk.length;
    if (begun.length < request.length) return;
    this.#takeBegun();
    const route = this.#isFree() ? this.#router.find(request) : undefined;
    if (route === undefined) this.#parse(bytes, request.length);
    else this.#router.answer(this, request, route, bytes);
  }

  /** Leaves a request to the parser; `length` is that of all of it. */
  #parse(chunk: Buffer, length: number): void {
    this.#unparsed = length - chunk.length;
    this.#reader.parse(chunk);
  }

  /** The bytes of the incomplete request, which is not waited for any more. */
  #takeBegun(): Buffer {
    const begun = this.#begun;
    if (begun === undefined) return NOTHING;
    clearTimeout(this.#bodyTimer);
    this.#begun = undefined;
    this.#router.bodyBudget.release(begun.request.length);
    return begun.bytes.subarray(0, begun.length);
  }

  /** Leaves an incomplete request to the parser. */
  readonly #giveUp = (): void => {
    const begun = this.#begun;
    if (begun !== undefined) this.#parse(this.#takeBegun(), begun.request.length);
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

/** Node's own listeners for what a connection brings. */
interface NodeReader {
  /** Gives bytes to Node's parser. */
  readonly parse: (chunk: Buffer) => void;
  /** Tells Node that the client has closed its half. */
  readonly end: () => void;
}

type Listener = (...args: readonly unknown[]) => void;

/**
 * How Node reads a connection that was just accepted. It does not document that: undefined where another listener reads
 * along, or where Node reads in another way than the one known here.
 */
export function nodeReader(socket: Socket): NodeReader | undefined {
  const [parse, ...otherData] = socket.listeners('data') as Listener[];
  // The first is that of the socket itself.
  const [own, end, ...otherEnds] = socket.listeners('end') as Listener[];
  if (parse === undefined || otherData.length > 0) return undefined;
  if (own?.name !== 'onReadableStreamEnd' || end === undefined || otherEnds.length > 0) return undefined;
  return { parse: parse as NodeReader['parse'], end: end as NodeReader['end'] };
}
