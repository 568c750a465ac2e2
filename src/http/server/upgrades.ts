import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HttpProblem } from '../problem.ts';
import { noteEndless } from './endless-reply.ts';
import { originForm } from './request-guard.ts';

/** The connection of a client that asks for a WebSocket, and the first bytes behind its request. */
export interface Upgrade {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** Whether somebody takes the WebSockets of a path. */
type Takes = (path: string) => boolean;

/** The upgrades that a route may take, by their request. */
const OFFERED = new WeakMap<IncomingMessage, Upgrade>();

/** Who takes the WebSockets of a server. */
class Takers {
  static readonly #all = new WeakMap<Server, Takers>();
  readonly #server: Server;
  readonly #takers = new Set<Takes>();

  static of(server: Server): Takers {
    const takers = Takers.#all.get(server) ?? new Takers(server);
    Takers.#all.set(server, takers);
    return takers;
  }

  private constructor(server: Server) {
    this.#server = server;
  }

  add(takes: Takes): void {
    if (this.#takers.size === 0) this.#server.on('upgrade', this.#onUpgrade);
    this.#takers.add(takes);
  }

  delete(takes: Takes): void {
    this.#takers.delete(takes);
    if (this.#takers.size === 0) this.#server.off('upgrade', this.#onUpgrade);
  }

  /** Whether the event `upgrade` brings the request to somebody. */
  reach(request: IncomingMessage): boolean {
    return this.#hasOthers() || this.#take(request);
  }

  #take({ url = '' }: IncomingMessage): boolean {
    const [path = ''] = originForm(url).split('?', 1);
    for (const takes of this.#takers) if (takes(path)) return true;
    return false;
  }

  /** Whether the server has upgrade listeners of others. */
  #hasOthers(): boolean {
    return this.#server.listenerCount('upgrade') > (this.#takers.size > 0 ? 1 : 0);
  }

  readonly #onUpgrade = (request: IncomingMessage, _stream: unknown, head: Buffer): void => {
    if (opensWebSocket(request) && this.#take(request))
      OFFERED.set(request, { socket: request.socket, head });
    else if (this.#hasOthers()) return;
    this.#answer(request);
  };

  /** Has a request that Node took off HTTP answered like any other. */
  #answer(request: IncomingMessage): void {
    const { socket } = request;
    // Node no longer listens.
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch {
      // A reply in front of it is not sent yet, and nothing would tell when it is.
      socket.destroy();
      return;
    }
    response.once('finish', () => {
      if (response.statusCode !== 101) socket.destroySoon();
    });
    this.#server.emit('request', request, response);
  }
}

/** Whether a request opens a WebSocket (RFC 6455 4.1). An `Upgrade` that `Connection` does not name is none. */
export function opensWebSocket({ method, httpVersionMinor, headers }: IncomingMessage): boolean {
  const { upgrade, connection } = headers;
  if (upgrade === undefined || connection === undefined) return false;
  return (
    method === 'GET' &&
    httpVersionMinor > 0 &&
    hasToken(upgrade, 'websocket') &&
    hasToken(connection, 'upgrade')
  );
}

function hasToken(list: string, token: string): boolean {
  return list.split(',').some((each) => each.trim().toLowerCase() === token);
}

/**
 * Lets the requests for WebSockets of some paths reach their routes, hooks included; a route finds the connection by
 * `offeredUpgrade`. Other upgrades are answered as if nobody had asked for one, or left to the server's other listeners.
 * Returns what ends it.
 */
export function takeUpgrades(server: Server, takes: Takes): () => void {
  Takers.of(server).add(takes);
  return () => Takers.of(server).delete(takes);
}

/** Whether somebody would take the WebSocket that a request asks for. */
export function mayUpgrade(server: Server, request: IncomingMessage): boolean {
  return opensWebSocket(request) && Takers.of(server).reach(request);
}

/** The upgrade that a request offers to its route. */
export function offeredUpgrade(request: IncomingMessage): Upgrade | undefined {
  return OFFERED.get(request);
}

/** Tells whoever waits for a reply that there is none: the connection has become a WebSocket. */
export function noteSwitch(response: ServerResponse): void {
  response.statusCode = 101;
  noteEndless(response);
  response.emit('finish');
}

/** Refuses a WebSocket that no route can take. */
export function refusedUpgrade(request: IncomingMessage): HttpProblem | undefined {
  if (request.headers.upgrade === undefined || !opensWebSocket(request)) return undefined;
  if (OFFERED.has(request)) return undefined;
  return new HttpProblem(400, 'NO_WEBSOCKET', 'There are no WebSockets here');
}
