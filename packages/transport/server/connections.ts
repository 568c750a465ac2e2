import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from './limits.ts';

/** A request in progress on the fast path. */
export interface InFlight {
  /** Called if the client disconnects before the reply. */
  cancel(): void;
}

/** How long a new connection counts as busy while it has sent nothing, in milliseconds. */
const FRESH = 1_000;

/** A client's connection, shared by both transports: its requests in progress and its idle time. */
export class Connection {
  readonly socket: Socket;
  /** The client's network, as returned by `networkOf`. */
  readonly network: string;
  /** Number of requests so far, on both transports. */
  #requests = 0;
  /** Unfinished replies of Node's transport, oldest first. */
  readonly #replies: ServerResponse[] = [];
  #leased: InFlight | undefined;
  #isClosing = false;
  #whenFree: (() => void)[] = [];
  /** The socket's own timeout while a longer one is set. */
  #idleTimeout: number | undefined;
  #bytesRead = 0;
  /** The last time at which new bytes were observed, in milliseconds of `performance.now()`. */
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

  /** Whether a request has arrived on this connection. */
  get isProven(): boolean {
    return this.#requests > 0;
  }

  /** Whether the last request allowed on a connection has arrived. */
  get requestLimitReached(): boolean {
    return this.#requests >= LIMITS.maxRequestsPerConnection;
  }

  /** The oldest unfinished reply of Node's transport. */
  get reply(): ServerResponse | undefined {
    return this.#replies[0];
  }

  /**
   * Whether a reply has announced that the connection closes; later requests are not processed (RFC 9112
   * 9.6).
   */
  get isClosing(): boolean {
    return this.#isClosing || !this.socket.writable;
  }

  /** Marks the connection as closing: the reply about to be sent closes it. */
  closeBehindReply(): void {
    this.#isClosing = true;
  }

  get leased(): InFlight | undefined {
    return this.#leased;
  }

  /** The number of requests whose replies are unfinished or not yet read by the client. */
  get inProgress(): number {
    const requests = this.#replies.length + (this.#leased === undefined ? 0 : 1);
    return requests > 0 || this.socket.writableLength === 0 ? requests : 1;
  }

  /** Counts a request that Node's parser has read as in progress until its reply closes. */
  begin(reply: ServerResponse): void {
    this.#requests++;
    this.#replies.push(reply);
    reply.once('close', () => {
      this.#replies.splice(this.#replies.indexOf(reply), 1);
    });
  }

  /** Counts a request of the fast path as in progress until `release`. */
  lease(leased: InFlight): void {
    this.#requests++;
    this.#leased = leased;
  }

  /** Ends the fast path's request. */
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

  /** Applies the timeout of a reply, instead of that of an idle connection, to the fast path's request. */
  extendTimeout(): void {
    if (this.#leased === undefined || this.#idleTimeout !== undefined) return;
    this.#idleTimeout = this.socket.timeout ?? 0;
    this.socket.setTimeout(LIMITS.idleReplyTimeout);
  }

  /** Calls a listener once the fast path has no request here; never if the client disconnects first. */
  whenFree(listener: () => void): void {
    if (this.#leased === undefined) listener();
    else this.#whenFree.push(listener);
  }

  /** Calls a listener once no reply is in progress; never if the client disconnects first. */
  whenAnswered(listener: () => void): void {
    const again = () => this.whenAnswered(listener);
    const last = this.#replies.at(-1);
    if (this.#leased !== undefined) this.whenFree(again);
    else if (last === undefined) listener();
    else last.once('close', again);
  }

  /**
   * Calls a listener once a reply of Node's transport is the next to be sent; never if the client disconnects
   * first.
   */
  whenNext(reply: ServerResponse, listener: () => void): void {
    const again = () => this.whenNext(reply, listener);
    if (this.socket.destroyed) return;
    if (this.#leased !== undefined) this.whenFree(again);
    else if (this.reply === reply) listener();
    else this.reply?.once('close', again);
  }

  /**
   * How long the connection has been idle, in milliseconds: no new bytes between calls and no request in
   * progress.
   */
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

/** The connection limits of a door. */
export interface ConnectionLimits {
  readonly max: number;
  /** Per IPv4 address or /64 IPv6 network; undefined for no limit. */
  readonly maxPerAddress: number | undefined;
}

/** How often all connections are checked, in milliseconds. */
const CHECK_INTERVAL = 1_000;
/** Idle time after which a stop closes a connection, in milliseconds. */
const SILENCE = 40;
/** Connections that have been idle for less than this are not evicted, in milliseconds. */
const EVICTABLE = 1_000;
/** Minimum time between two searches for idle connections, in milliseconds. */
const SEARCH_INTERVAL = 100;
/** The share of a limit that one search evicts, so that a flood does not cause a search per connection. */
const BATCH = 0.01;

/** The open connections of a door. At a limit, a new connection evicts those that have been idle longest. */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #open = new Map<Socket, Connection>();
  readonly #perNetwork = new Map<string, number>();
  #accepted = 0;
  #isCut = false;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** The number of connections accepted so far, including refused ones. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Tracks the connections of a server. Call it before adding other connection listeners. */
  watch(server: Server, event: 'connection' | 'secureConnection' = 'connection'): void {
    server.on('connection', () => this.#accepted++);
    server.on(event, (socket: Socket) => this.#add(socket));
    server.once('listening', () => {
      const check = setInterval(() => this.#check(), CHECK_INTERVAL).unref();
      server.once('close', () => clearInterval(check));
    });
  }

  /** The state of an open connection; undefined if it is closed or was refused. */
  of(socket: Socket): Connection | undefined {
    return this.#open.get(socket);
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#open.values();
  }

  /** Closes the connections that were idle over this and earlier calls. */
  closeIdle(): void {
    const now = performance.now();
    for (const connection of this.#open.values()) {
      if (connection.idleFor(now) >= SILENCE) connection.socket.destroy();
    }
  }

  #check(): void {
    const now = performance.now();
    for (const connection of this.#open.values()) {
      connection.idleFor(now);
      connection.extendTimeout();
    }
  }

  /** Closes all connections, and any that are accepted later. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #add(socket: Socket): void {
    const connection = new Connection(socket);
    const { network } = connection;
    const { max, maxPerAddress = max } = this.#limits;
    if (this.#countOf(network) >= maxPerAddress) this.#evictIdle(maxPerAddress, network);
    else if (this.#open.size >= max) this.#evictIdle(max);
    if (this.#isCut || this.#countOf(network) >= maxPerAddress || this.#open.size >= max) {
      socket.destroy();
      return;
    }
    this.#open.set(socket, connection);
    this.#perNetwork.set(network, this.#countOf(network) + 1);
    socket.once('close', () => this.#remove(connection));
  }

  #countOf(network: string): number {
    return this.#perNetwork.get(network) ?? 0;
  }

  #remove({ socket, network }: Connection): void {
    if (!this.#open.delete(socket)) return;
    const left = this.#countOf(network) - 1;
    if (left > 0) this.#perNetwork.set(network, left);
    else this.#perNetwork.delete(network);
  }

  /** Evicts the connections, of one network if given, that have been idle longest. */
  #evictIdle(limit: number, network?: string): void {
    const now = performance.now();
    if (now - this.#searchedAt < SEARCH_INTERVAL) return;
    this.#searchedAt = now;
    const idle = [...this.#open.values()]
      .filter((connection) => network === undefined || connection.network === network)
      .map((connection) => ({ connection, since: connection.idleFor(now) }))
      .filter(({ since }) => since >= EVICTABLE)
      .sort((a, b) => b.since - a.since);
    for (const { connection } of idle.slice(0, Math.ceil(limit * BATCH))) {
      this.#remove(connection);
      connection.socket.destroy();
    }
  }
}

/**
 * The network of an address: the IPv4 address itself, or the first 64 bits of an IPv6 address, because one
 * client usually has the whole /64. Empty if there is no address, as for a closed socket.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined || !address.includes(':') || address.includes('.')) return address ?? '';
  const [before = '', after] = address.split('%', 1)[0]?.split('::') ?? [];
  const groups = before.split(':');
  if (after !== undefined) {
    const missing = 8 - groups.length - (after === '' ? 0 : after.split(':').length);
    groups.push(...Array.from({ length: Math.max(missing, 0) }, () => '0'), ...after.split(':'));
  }
  return groups
    .slice(0, 4)
    .map((group) => group || '0')
    .join(':');
}
