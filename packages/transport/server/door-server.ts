import {
  type IncomingMessage,
  METHODS,
  type RequestListener,
  Server,
  type ServerOptions,
  ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as tick } from 'node:timers/promises';
import type { TlsOptions } from 'node:tls';
import { HttpProblem } from '../problem.ts';
import { noteEndless } from '../reply/event-streams.ts';
import type { Connections } from './connections.ts';
import { originForm } from './guards.ts';
import { Handshakes } from './handshakes.ts';
import { LIMITS } from './limits.ts';
import { connectionEvent } from './listen.ts';

/** How often a closing server looks for connections that have become idle, in milliseconds. */
const SWEEP_INTERVAL = 50;

const OPTIONS: ServerOptions = {
  requestTimeout: LIMITS.requestTimeout,
  headersTimeout: LIMITS.headersTimeout,
  keepAliveTimeout: LIMITS.keepAliveTimeout,
  connectionsCheckingInterval: LIMITS.checkInterval,
  maxHeaderSize: LIMITS.maxHeaderBytes,
  insecureHTTPParser: false,
  // Refused by us, in the door's own format.
  requireHostHeader: false,
};

/** What a connection over TLS has beside the limits of a plain one. */
const TLS_OPTIONS: TlsOptions & { readonly allowHalfOpen: boolean } = {
  handshakeTimeout: LIMITS.headersTimeout,
  allowHalfOpen: true,
};

const KNOWN_METHODS: ReadonlySet<string | undefined> = new Set(METHODS);

/** What Node's parser says of a method that it does not know. */
class UnknownMethodError extends Error {
  readonly code = 'HPE_INVALID_METHOD';
}

/**
 * The HTTP server of a door. Its stop cuts no request: the system resets connections that wait to be accepted when the
 * port closes, and Node's own server closes those whose first request it has not read.
 */
export interface DoorServer extends Server {
  /** Whether it speaks TLS. */
  readonly isSecure: boolean;
  /** Closes the port once nobody connects for a moment. Never rejects. */
  stopAccepting(): Promise<void>;
}

/** How the server of a door is made. */
interface DoorServerOptions {
  readonly handle: RequestListener;
  readonly connections: Connections;
  /** The server of the same door that its upgrade listeners know; this one if absent. */
  readonly main?: DoorServer | undefined;
  /** Certificate and rules of TLS; plain HTTP if absent. */
  readonly tls?: TlsOptions | undefined;
  /** The class of the requests. */
  readonly message: typeof IncomingMessage;
}

/** Makes a server that does not listen yet. */
export function createDoorServer(options: DoorServerOptions): DoorServer {
  return options.tls === undefined ? new PlainDoorServer(options) : new (secureDoorServer())(options);
}

type ServerClass = new (options: ServerOptions & TlsOptions) => Server;

// One class over both of Node's servers. Types of what is exported cannot name an anonymous class.
const doorServer = (Base: ServerClass) =>
  class extends Base implements DoorServer {
    readonly isSecure: boolean;
    readonly #connections: Connections;
    /** Replies to requests whose clients wait to be told to send the body. */
    readonly #awaited = new WeakSet<ServerResponse>();
    /** Set while the port closes: what arrives is answered afterwards, because clients that have a reply connect again. */
    #held: (() => void)[] | undefined;
    #stops: Promise<void> | undefined;
    #state: 'open' | 'closing' | 'closed' = 'open';

    readonly #handshakes: Handshakes | undefined;

    constructor({ handle, connections, main, tls, message }: DoorServerOptions) {
      super({
        ...OPTIONS,
        IncomingMessage: message,
        ...(tls !== undefined && { ...TLS_OPTIONS, ...tls }),
        shouldUpgradeCallback: (request) => this.#mayUpgrade(main ?? this, request),
      });
      this.isSecure = tls !== undefined;
      this.timeout = LIMITS.idleReplyTimeout;
      this.maxHeadersCount = LIMITS.maxHeaders;
      // Not documented: where Node no longer knows it, a client that closes its half behind a request gets no reply.
      Object.assign(this, { httpAllowHalfOpen: true });
      this.#connections = connections;
      connections.watch(this, connectionEvent(this));
      if (tls !== undefined) {
        this.#handshakes = new Handshakes();
        this.#handshakes.watch(this);
      }
      this.on('close', () => {
        this.#state = 'closed';
      });
      if (main !== undefined) {
        this.on('upgrade', (request, socket, head) => {
          if (!main.emit('upgrade', request, socket, head)) socket.destroy();
        });
      }
      const take: RequestListener = (request, response) => this.#take(handle, request, response);
      // Node would answer expectations at once: in front of what the fast path has not sent, and within a reply that waits.
      this.on('request', take)
        .on('checkExpectation', take)
        .on('checkContinue', (request, response) => {
          this.#awaited.add(response);
          this.emit('request', request, response);
        });
    }

    /** Behind a request that is in progress nothing is taken off HTTP. */
    #mayUpgrade(main: Server, request: IncomingMessage): boolean {
      const connection = this.#connections.of(request.socket);
      if (connection === undefined || connection.isClosing || connection.inProgress > 0) return false;
      return mayUpgrade(main, request);
    }

    #take(handle: RequestListener, request: IncomingMessage, response: ServerResponse): void {
      const connection = this.#connections.of(request.socket);
      // Refused, or closed just now.
      if (connection === undefined || connection.isClosing) return;
      // Node's parser knows those of RTSP too. Fastify would log each.
      if (!KNOWN_METHODS.has(request.method)) {
        connection.closeBehindReply();
        this.emit('clientError', new UnknownMethodError(), request.socket);
        return;
      }
      connection.begin(response);
      // Node drops the bytes behind an Upgrade that it ignores, so that later replies would answer other requests.
      if (connection.requestLimitReached || request.headers.upgrade !== undefined) {
        response.setHeader('connection', 'close');
      }
      const answer = () => {
        if (!this.#awaited.has(response)) return connection.whenFree(() => handle(request, response));
        connection.whenNext(response, () => {
          response.writeContinue();
          handle(request, response);
        });
      };
      if (this.#held === undefined) answer();
      else this.#held.push(answer);
    }

    stopAccepting(): Promise<void> {
      this.#stops ??= this.#stopAccepting();
      return this.#stops;
    }

    async #stopAccepting(): Promise<void> {
      if (!this.listening) return;
      const held: (() => void)[] = [];
      this.#held = held;
      await drainAccepts(() => this.#connections.accepted);
      this.close();
      this.#held = undefined;
      for (const answer of held) answer();
    }

    /** Closes the port, if that is still open, and calls `done` when the last connection is closed. */
    override close(done: (error?: Error) => void = () => {}): this {
      if (this.#state === 'open') {
        this.#state = 'closing';
        const sweep = setInterval(() => this.closeIdleConnections(), SWEEP_INTERVAL);
        this.once('close', () => clearInterval(sweep));
        return super.close(done);
      }
      if (this.#state === 'closed') process.nextTick(done);
      else this.once('close', () => done());
      return this;
    }

    /** Spares the connections on which something is in progress; a later call closes what has become idle. */
    override closeIdleConnections(): void {
      this.#connections.closeIdle();
      this.#handshakes?.cutOld();
    }
  };

const PlainDoorServer = doorServer(Server);

/** Loads TLS only where it is used: it takes 25 ms and some megabytes. */
function secureDoorServer() {
  const { Server: SecureServer } = process.getBuiltinModule('node:https');
  return doorServer(SecureServer as unknown as ServerClass);
}

/** For how long nobody may have connected, in milliseconds. */
const QUIET = 20;
/** Between two looks; a connection that waits ends it. In milliseconds. */
const PAUSE = 1;
/** What one pause counts at most: in a longer one the process, and its clients with it, may not have run. In milliseconds. */
const COUNTED = 2;
/** After a longer last look the process may have been stopped behind it, in milliseconds; one that finds nothing takes microseconds. */
const IMMEDIATE = 0.1;
/** After this one look that finds nobody is enough, in milliseconds. */
const FIRST_LIMIT = 1_500;
/** The longest wait where every look finds somebody, in milliseconds. */
const MAX_WAIT = 2_000;

/**
 * Resolves in the moment when nobody has connected for a while, so that the port can be closed before the next client
 * comes: the system resets connections that wait to be accepted then. Of these one is accepted in a tick.
 *
 * @param accepted How many connections were accepted so far.
 */
export async function drainAccepts(accepted: () => number): Promise<void> {
  const started = performance.now();
  let count = accepted();
  let quiet = 0;
  for (;;) {
    const before = performance.now();
    const waited = before - started;
    const isEnough = quiet >= QUIET || (quiet > 0 && waited >= FIRST_LIMIT);
    await (isEnough ? tick() : sleep(PAUSE));
    const took = performance.now() - before;
    const next = accepted();
    if (next !== count) quiet = 0;
    else if (isEnough && took < IMMEDIATE) return;
    else quiet += Math.min(took, COUNTED);
    if (waited >= MAX_WAIT) return;
    count = next;
  }
}

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
function opensWebSocket({ method, httpVersionMinor, headers }: IncomingMessage): boolean {
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
function mayUpgrade(server: Server, request: IncomingMessage): boolean {
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
