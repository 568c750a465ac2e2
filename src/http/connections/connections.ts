import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Connection } from './connection.ts';

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
