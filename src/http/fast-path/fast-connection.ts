import type { Socket } from 'node:net';
import { LIMITS } from '../limits.ts';
import { type Parse, replyInProgress } from './node-internals.ts';
import { type PlainRequest, PlainRequestReader } from './plain-request.ts';

/** A request that is being answered by the fast path. */
export interface Leased {
  /** Called when the client is gone before the reply. */
  cancel(): void;
}

/** What answers the plain requests of connections. */
export interface FastRouter<Route> {
  /** The route of a request that the fast path may answer. */
  find(request: PlainRequest): Route | undefined;
  /** Answers a request; `chunk` holds its bytes. Calls `connection.lease` first. */
  answer(connection: FastConnection<Route>, request: PlainRequest, route: Route, chunk: Buffer): void;
  /** Called when a connection may have become idle. */
  onIdle(): void;
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
  readonly #socket: Socket;
  readonly #parse: Parse;
  readonly #router: FastRouter<Route>;
  readonly #requestReader = new PlainRequestReader();
  /** Bytes of a body that the parser is still to get. */
  #unparsed = 0;
  /** Plain requests so far, of both transports. */
  #requests = 0;
  #leased: Leased | undefined;
  /** A request whose body is incomplete, and its length when it is complete. */
  #received: { readonly chunk: Buffer; readonly length: number } | undefined;
  #bodyTimer: NodeJS.Timeout | undefined;
  /** Arrived behind the request that is being answered. */
  #behind: Buffer | undefined;
  /** The socket's own timeout, while a longer one is set. */
  #idleTimeout: number | undefined;

  /** `parse` is Node's own listener for the socket's data, which this connection replaces. */
  constructor(socket: Socket, parse: Parse, router: FastRouter<Route>) {
    this.#socket = socket;
    this.#parse = parse;
    this.#router = router;
    // Node reads past all listeners until there is one that is not its own.
    socket.on('data', this.#read);
    socket.off('data', parse);
    // The parser refuses a request that ends too early.
    socket.prependListener('end', this.#giveUp);
    socket.once('close', () => {
      clearTimeout(this.#bodyTimer);
      this.#received = undefined;
      const leased = this.#leased;
      this.#leased = undefined;
      leased?.cancel();
    });
  }

  /** Whether a request is being received or answered here. */
  get busy(): boolean {
    return this.#leased !== undefined || this.#received !== undefined;
  }

  /** Whether the reply under way is the connection's last. */
  get requestLimitReached(): boolean {
    return this.#requests >= LIMITS.maxRequestsPerConnection;
  }

  /** Begins to answer a request. */
  lease(leased: Leased): void {
    this.#leased = leased;
  }

  /** Gives the leased request to the parser after all. */
  handOver(chunk: Buffer): void {
    // The parser of a destroyed connection serves another one.
    if (this.#leased === undefined || this.#socket.destroyed) return;
    this.#release();
    this.#leaveToParser(chunk);
    this.#continue();
  }

  /**
   * Writes the reply to the leased request, and closes the connection behind it when that is the `last` one.
   * Calls `done` once the system has it; for a client that is gone nothing happens.
   */
  reply(head: string, body: string | Buffer, last: boolean, done: () => void): void {
    const socket = this.#socket;
    if (this.#leased === undefined || !socket.writable) return;
    if (typeof body === 'string') {
      // A head is ASCII, and Latin-1 is what a text of one byte per character is already.
      socket.write(head + body, Buffer.byteLength(body) === body.length ? 'latin1' : 'utf8');
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    }
    const sent = socket.writableLength === 0;
    const onSent = () => {
      done();
      this.#release();
      this.#continue();
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
    this.#socket.destroy();
  }

  /** Gives a leased request the timeout of a reply, not that of an idle connection. */
  extendTimeout(): void {
    if (this.#leased === undefined || this.#idleTimeout !== undefined) return;
    this.#idleTimeout = this.#socket.timeout ?? 0;
    this.#socket.setTimeout(LIMITS.idleReplyTimeout);
  }

  readonly #read = (chunk: Buffer): void => {
    if (this.#leased !== undefined) {
      // The parser may not answer it before the reply that is under way: it gets it behind that, and all that follows.
      this.#behind = chunk;
      this.#socket.pause();
    } else if (this.#unparsed > 0) {
      this.#unparsed -= chunk.length;
      if (this.#unparsed < 0) this.#stepAside();
      this.#parse(chunk);
    } else {
      this.#receive(this.#received === undefined ? chunk : Buffer.concat([this.#received.chunk, chunk]));
    }
  };

  #receive(chunk: Buffer): void {
    this.#received = undefined;
    const request = this.#requestReader.read(chunk);
    if (request === undefined) {
      this.#stepAside();
      this.#leaveToParser(chunk);
      return;
    }
    const { length } = request;
    // Until the parser had a whole request it takes the connection for one that is late with its first.
    const route = this.#requests > 0 && this.#isFree() ? this.#router.find(request) : undefined;
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
    this.#requests++;
    if (route !== undefined && isComplete) {
      this.#router.answer(this, request, route, chunk);
    } else {
      this.#unparsed = length - chunk.length;
      this.#leaveToParser(chunk);
    }
  }

  /** Leaves an incomplete request to the parser. */
  readonly #giveUp = (): void => {
    this.#bodyTimer = undefined;
    const received = this.#received;
    if (received === undefined) return;
    this.#received = undefined;
    this.#requests++;
    this.#unparsed = received.length - received.chunk.length;
    this.#leaveToParser(received.chunk);
  };

  #leaveToParser(chunk: Buffer): void {
    this.#parse(chunk);
    this.#router.onIdle();
  }

  #isFree(): boolean {
    return replyInProgress(this.#socket) === undefined && this.#socket.writable;
  }

  #stepAside(): void {
    this.#socket.on('data', this.#parse);
    this.#socket.off('data', this.#read);
  }

  #release(): void {
    this.#leased = undefined;
    if (this.#idleTimeout === undefined) return;
    this.#socket.setTimeout(this.#idleTimeout);
    this.#idleTimeout = undefined;
  }

  #continue(): void {
    const behind = this.#behind;
    if (behind !== undefined && this.#socket.writable) {
      this.#behind = undefined;
      this.#stepAside();
      this.#parse(behind);
      this.#socket.resume();
    }
    this.#router.onIdle();
  }
}
