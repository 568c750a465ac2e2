import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from './limits.ts';

/** A request that is being answered by the fast path. */
export interface InFlight {
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
  #leased: InFlight | undefined;
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

  get leased(): InFlight | undefined {
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
  lease(leased: InFlight): void {
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

/** How many connections a door has. */
export interface ConnectionLimits {
  readonly max: number;
  /** Of one address, or one IPv6 network of 64 bits; undefined for no limit of its own. */
  readonly maxPerAddress: number | undefined;
}

/** How often all connections are looked at, in milliseconds. */
const CHECK_INTERVAL = 1_000;
/** Silence after which a connection is closed in a stop, in milliseconds. */
const SILENCE = 40;
/** A connection that is shorter idle than this makes room for nobody, in milliseconds. */
const EVICTABLE = 1_000;
/** The time between two searches for idle connections that may make room, in milliseconds. */
const SEARCH_INTERVAL = 100;
/** The part of a limit's connections that one search closes, so that a flood does not pay for a search each. */
const BATCH = 0.01;

/** The open connections of a door. At a limit the connections that are idle for longest make room for a new one. */
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

  /** How many connections were accepted so far, those that were refused included. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Notes the connections that an event of a server brings. Call it before anybody else listens for them. */
  watch(server: Server, event: 'connection' | 'secureConnection' = 'connection'): void {
    server.on('connection', () => this.#accepted++);
    server.on(event, (socket: Socket) => this.#add(socket));
    server.once('listening', () => {
      const check = setInterval(() => this.#check(), CHECK_INTERVAL).unref();
      server.once('close', () => clearInterval(check));
    });
  }

  /** An open connection; undefined for one that is closed or was refused. */
  of(socket: Socket): Connection | undefined {
    return this.#open.get(socket);
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#open.values();
  }

  /** Closes the connections on which nothing is in progress, as far as this and earlier calls could see. */
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

  /** Closes all connections, and those that come later. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #add(socket: Socket): void {
    const connection = new Connection(socket);
    const { network } = connection;
    const { max, maxPerAddress = max } = this.#limits;
    if (this.#countOf(network) >= maxPerAddress) this.#makeRoom(maxPerAddress, network);
    else if (this.#open.size >= max) this.#makeRoom(max);
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

  /** Closes the connections, of one network where it is named, that are idle for longest. */
  #makeRoom(limit: number, network?: string): void {
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
 * What counts as one client among addresses: an IPv4 address, or the first 64 bits of an IPv6 one, of which a client
 * has all others. Empty for none, as a socket that is closed has.
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
