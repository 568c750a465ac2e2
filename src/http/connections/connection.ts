import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../limits.ts';
import { networkOf } from './network-of.ts';

/** A request that is being answered by the fast path. */
export interface Leased {
  /** Called when the client is gone before the reply. */
  cancel(): void;
}

/** How long a connection may be silent before its first byte and still count as busy, in milliseconds. */
const FRESH = 1_000;

/** A client's connection, as both transports know it: what is in progress on it, and since when nothing is. */
export class Connection {
  readonly socket: Socket;
  /** The client's network, as `networkOf` names it. */
  readonly network: string;
  /** Requests so far, of both transports. */
  #requests = 0;
  /** The replies of Node's own transport that have not ended, oldest first. */
  readonly #replies: ServerResponse[] = [];
  #leased: Leased | undefined;
  #isClosing = false;
  #whenFree: (() => void)[] = [];
  /** The socket's own timeout, while a longer one is set. */
  #idleTimeout: number | undefined;
  #bytesRead = 0;
  /** When the last byte was seen to arrive, in milliseconds of `performance.now()`. */
  #movedAt = performance.now();

  constructor(socket: Socket) {
    this.socket = socket;
    this.network = networkOf(socket.remoteAddress);
    socket.once('close', () => {
      this.#whenFree = [];
      const leased = this.#leased;
      this.#leased = undefined;
      leased?.cancel();
    });
  }

  /** Whether this connection has had a request. */
  get isProven(): boolean {
    return this.#requests > 0;
  }

  /** Whether the last request that a connection may have is here. */
  get requestLimitReached(): boolean {
    return this.#requests >= LIMITS.maxRequestsPerConnection;
  }

  /** The oldest reply of Node's own transport that has not ended. */
  get reply(): ServerResponse | undefined {
    return this.#replies[0];
  }

  /** Whether a reply that closes the connection is sent: what comes behind it is not processed (RFC 9112 9.6). */
  get isClosing(): boolean {
    return this.#isClosing || !this.socket.writable;
  }

  /** A reply that closes the connection is about to be sent. */
  closeBehindReply(): void {
    this.#isClosing = true;
  }

  get leased(): Leased | undefined {
    return this.#leased;
  }

  /** The number of requests whose replies have not ended, or are not read yet. */
  get inProgress(): number {
    const requests = this.#replies.length + (this.#leased === undefined ? 0 : 1);
    return requests > 0 || this.socket.writableLength === 0 ? requests : 1;
  }

  /** Notes a request that Node's parser has read, until its reply ends. */
  begin(reply: ServerResponse): void {
    this.#requests++;
    this.#replies.push(reply);
    reply.once('close', () => {
      this.#replies.splice(this.#replies.indexOf(reply), 1);
    });
  }

  /** Notes a request that the fast path answers, until `release`. */
  lease(leased: Leased): void {
    this.#requests++;
    this.#leased = leased;
  }

  /** The leased request is answered. */
  release(): void {
    this.#leased = undefined;
    if (this.#idleTimeout !== undefined) {
      this.socket.setTimeout(this.#idleTimeout);
      this.#idleTimeout = undefined;
    }
    if (this.#whenFree.length === 0) return;
    const listeners = this.#whenFree;
    this.#whenFree = [];
    for (const listener of listeners) listener();
  }

  /** Gives a leased request the timeout of a reply, not that of an idle connection. */
  extendTimeout(): void {
    if (this.#leased === undefined || this.#idleTimeout !== undefined) return;
    this.#idleTimeout = this.socket.timeout ?? 0;
    this.socket.setTimeout(LIMITS.idleReplyTimeout);
  }

  /** Calls a listener once the fast path answers nothing here; never when the client is gone before. */
  whenFree(listener: () => void): void {
    if (this.#leased === undefined) listener();
    else this.#whenFree.push(listener);
  }

  /** Calls a listener once no reply is in progress; never when the client is gone before. */
  whenAnswered(listener: () => void): void {
    const again = () => this.whenAnswered(listener);
    const last = this.#replies.at(-1);
    if (this.#leased !== undefined) this.whenFree(again);
    else if (last === undefined) listener();
    else last.once('close', again);
  }

  /** Calls a listener once a reply of Node's own transport is the next one; never when the client is gone before. */
  whenNext(reply: ServerResponse, listener: () => void): void {
    const again = () => this.whenNext(reply, listener);
    if (this.socket.destroyed) return;
    if (this.#leased !== undefined) this.whenFree(again);
    else if (this.reply === reply) listener();
    else this.reply?.once('close', again);
  }

  /** For how long nothing has arrived, as far as was looked, and nothing was in progress; in milliseconds. */
  idleFor(now: number): number {
    const { bytesRead, writableLength } = this.socket;
    if (bytesRead !== this.#bytesRead) {
      this.#bytesRead = bytesRead;
      this.#movedAt = now;
    }
    const idle = now - this.#movedAt;
    const isBusy = this.#leased !== undefined || this.#replies.length > 0 || writableLength > 0;
    return isBusy || (bytesRead === 0 && idle < FRESH) ? 0 : idle;
  }
}
