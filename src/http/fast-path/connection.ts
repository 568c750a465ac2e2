import type { Socket } from 'node:net';
import { LIMITS } from '../limits.ts';
import { type PlainRequest, PlainRequestReader } from './plain-request.ts';
import { replyInProgress } from './reply-in-progress.ts';

/** A request that is answered beside Node's parser. */
export interface Taken {
  /** The client is gone. */
  abandon(): void;
}

/** What is answered beside the parser, and how. */
export interface Lane<Route> {
  /** Undefined for a request that is not the lane's. */
  find(request: PlainRequest): Route | undefined;
  /** Answers a request by `connection.begin` and what follows, or returns false and leaves it alone. */
  take(connection: DirectConnection<Route>, request: PlainRequest, route: Route, chunk: Buffer): boolean;
  /** The connection may have become free. */
  onFree(): void;
}

/** Many clients write head and body apart: the rest is here in a moment, in milliseconds, or it is the parser's. */
const PATIENCE = 20;
/** Larger requests are the parser's when they come in pieces, in bytes. */
const MAX_PARTS = 16 * 1024;

/**
 * A connection whose bytes are looked at before Node's parser gets them. As long as each request on it is plain, it is
 * known where one ends, and any of them can be answered without that parser. Once one is not, all bytes are the parser's
 * for good.
 */
export class DirectConnection<Route> {
  readonly #socket: Socket;
  readonly #parse: (chunk: Buffer) => void;
  readonly #lane: Lane<Route>;
  readonly #requestReader = new PlainRequestReader();
  /** Bytes of a body that the parser is still to get. */
  #unread = 0;
  /** Of all kinds. Node counts those of its parser by itself, so a connection that goes there for good begins anew. */
  #requests = 0;
  #taken: Taken | undefined;
  /** The beginning of a request of the lane, and how long it is with the rest. */
  #begun: { readonly chunk: Buffer; readonly length: number } | undefined;
  #patience: NodeJS.Timeout | undefined;
  /** What came behind a request that is being answered. */
  #held: Buffer | undefined;
  /** The socket's own timeout, while a longer one is set. */
  #timeoutBefore: number | undefined;

  /** `parse` is Node's own listener for the socket's data, which this one takes the place of. */
  constructor(socket: Socket, parse: (chunk: Buffer) => void, lane: Lane<Route>) {
    this.#socket = socket;
    this.#parse = parse;
    this.#lane = lane;
    // Node reads past all listeners until there is one that is not its own.
    socket.on('data', this.#read);
    socket.off('data', parse);
    // The parser says what is wrong with a request that ends too early.
    socket.prependListener('end', this.#giveUp);
    socket.once('close', () => {
      clearTimeout(this.#patience);
      this.#begun = undefined;
      const taken = this.#taken;
      this.#taken = undefined;
      taken?.abandon();
    });
  }

  /** Whether a request is being received or answered beside the parser. */
  get busy(): boolean {
    return this.#taken !== undefined || this.#begun !== undefined;
  }

  /** Whether the client is to come back with another connection after this reply. */
  get isWornOut(): boolean {
    return this.#requests >= LIMITS.maxRequestsPerConnection;
  }

  /** The request is answered beside the parser from here on. */
  begin(taken: Taken): void {
    this.#taken = taken;
  }

  /** Takes `begin` back, with nothing done. */
  leave(): void {
    this.#taken = undefined;
  }

  /** The request that was begun is the parser's after all. */
  handOver(chunk: Buffer): void {
    // The parser of a connection that is gone works for another one.
    if (this.#taken === undefined || this.#socket.destroyed) return;
    this.#end();
    this.#leaveToParser(chunk);
    this.#goOn();
  }

  /**
   * Writes the reply to the request that was begun, and ends the connection behind it when that is the `last` one.
   * Calls `done` once the system has it; for a client that is gone nothing happens.
   */
  reply(text: string, encoding: 'latin1' | 'utf8', last: boolean, done: () => void): void {
    const socket = this.#socket;
    if (this.#taken === undefined || !socket.writable) return;
    socket.write(text, encoding);
    const isOut = socket.writableLength === 0;
    const onOut = () => {
      done();
      this.#end();
      this.#goOn();
    };
    // Mostly the system takes it at once, and to hear of that from the stream costs a turn of its queue.
    if (!isOut) {
      socket.write('', (error) => {
        if (!error) onOut();
      });
    }
    if (last) socket.destroySoon();
    if (isOut && socket.errored === null) onOut();
  }

  /** Gives a request that is being answered the time that Node gives a reply, not that of an idle connection. */
  extend(): void {
    if (this.#taken === undefined || this.#timeoutBefore !== undefined) return;
    this.#timeoutBefore = this.#socket.timeout ?? 0;
    this.#socket.setTimeout(LIMITS.idleReplyTimeout);
  }

  readonly #read = (chunk: Buffer): void => {
    if (this.#taken !== undefined) {
      // Nobody else resumes the socket, so no second piece comes.
      this.#held = chunk;
      this.#socket.pause();
      return;
    }
    if (this.#unread > 0) {
      this.#unread -= chunk.length;
      if (this.#unread < 0) this.#stepAside();
      this.#parse(chunk);
    } else this.#receive(this.#begun === undefined ? chunk : Buffer.concat([this.#begun.chunk, chunk]));
  };

  #receive(chunk: Buffer): void {
    this.#begun = undefined;
    const request = this.#requestReader.read(chunk);
    if (request === undefined) {
      this.#stepAside();
      this.#leaveToParser(chunk);
      return;
    }
    const { length } = request;
    // Until the parser had a whole request it takes the connection for one that is late with its first.
    const route = this.#requests > 0 && this.#isFree() ? this.#lane.find(request) : undefined;
    if (route !== undefined && length > chunk.length && length <= MAX_PARTS) {
      this.#begun = { chunk, length };
      this.#patience ??= setTimeout(this.#giveUp, PATIENCE);
      return;
    }
    if (this.#patience !== undefined) {
      clearTimeout(this.#patience);
      this.#patience = undefined;
    }
    this.#requests++;
    if (route !== undefined && length === chunk.length && this.#lane.take(this, request, route, chunk))
      return;
    this.#unread = length - chunk.length;
    this.#leaveToParser(chunk);
  }

  /** The request that has begun is the parser's. */
  readonly #giveUp = (): void => {
    this.#patience = undefined;
    const begun = this.#begun;
    if (begun === undefined) return;
    this.#begun = undefined;
    this.#requests++;
    this.#unread = begun.length - begun.chunk.length;
    this.#leaveToParser(begun.chunk);
  };

  #leaveToParser(chunk: Buffer): void {
    this.#parse(chunk);
    this.#lane.onFree();
  }

  #isFree(): boolean {
    return replyInProgress(this.#socket) === undefined && this.#socket.writable;
  }

  #stepAside(): void {
    this.#socket.on('data', this.#parse);
    this.#socket.off('data', this.#read);
  }

  #end(): void {
    this.#taken = undefined;
    if (this.#timeoutBefore === undefined) return;
    this.#socket.setTimeout(this.#timeoutBefore);
    this.#timeoutBefore = undefined;
  }

  #goOn(): void {
    const held = this.#held;
    if (held !== undefined && this.#socket.writable) {
      this.#held = undefined;
      this.#socket.resume();
      this.#read(held);
    }
    this.#lane.onFree();
  }
}
