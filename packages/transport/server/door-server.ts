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
import { noteEndless } from '../reply/reply-streams.ts';
import type { Connections } from './connections.ts';
import { originForm } from './guards.ts';
import { Handshakes } from './handshakes.ts';
import { LIMITS } from './limits.ts';
import { connectionEvent } from './listen.ts';

/** How often a closing server looks for idle connections, in milliseconds. */
const SWEEP_INTERVAL = 50;

const OPTIONS: ServerOptions = {
  requestTimeout: LIMITS.requestTimeout,
  headersTimeout: LIMITS.headersTimeout,
  keepAliveTimeout: LIMITS.keepAliveTimeout,
  connectionsCheckingInterval: LIMITS.checkInterval,
  maxHeaderSize: LIMITS.maxHeaderBytes,
  insecureHTTPParser: false,
  // The door refuses a missing Host in its own error format.
  requireHostHeader: false,
};

/** Additional options for TLS connections. */
const TLS_OPTIONS: TlsOptions & { readonly allowHalfOpen: boolean } = {
  handshakeTimeout: LIMITS.headersTimeout,
  allowHalfOpen: true,
};

const KNOWN_METHODS: ReadonlySet<string | undefined> = new Set(METHODS);

/** The error of Node's parser for a method that it does not know. */
class UnknownMethodError extends Error {
  readonly code = 'HPE_INVALID_METHOD';
}

/**
 * The HTTP server of a door. Stopping it loses no request: closing the port would make the system reset
 * connections that wait to be accepted, and Node's server would close connections whose first request it has
 * not read.
 */
export interface DoorServer extends Server {
  /** Whether it speaks TLS. */
  readonly isSecure: boolean;
  /** Closes the port once no client has connected for a moment. Never rejects. */
  stopAccepting(): Promise<void>;
}

/** The options of a door's server. */
interface DoorServerOptions {
  readonly handle: RequestListener;
  readonly connections: Connections;
  /** The server that has the door's upgrade listeners; default this one. */
  readonly main?: DoorServer | undefined;
  /** TLS options; default plain HTTP. */
  readonly tls?: TlsOptions | undefined;
  /** The class of request messages. */
  readonly message: typeof IncomingMessage;
}

/** Creates a server that does not listen yet. */
export function createDoorServer(options: DoorServerOptions): DoorServer {
  return options.tls === undefined ? new PlainDoorServer(options) : new (secureDoorServer())(options);
}

type ServerClass = new (options: ServerOptions & TlsOptions) => Server;

// One class for both of Node's servers. Exported types cannot name an anonymous class.
const doorServer = (Base: ServerClass) =>
  class extends Base implements DoorServer {
    readonly isSecure: boolean;
    readonly #connections: Connections;
    /** Replies to requests whose clients wait for 100 Continue. */
    readonly #awaited = new WeakSet<ServerResponse>();
    /**
     * Requests that arrive while the port closes. They are answered afterwards, because a client that gets a
     * reply connects again.
     */
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
      // Undocumented. If Node removes it, a client that closes its half after a request gets no reply.
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
      // Node would answer expectations immediately: before unsent replies of the fast path, and within a
      // pending reply.
      this.on('request', take)
        .on('checkExpectation', take)
        .on('checkContinue', (request, response) => {
          this.#awaited.add(response);
          this.emit('request', request, response);
        });
    }

    /** Upgrades are refused while a request is in progress. */
    #mayUpgrade(main: Server, request: IncomingMessage): boolean {
      const connection = this.#connections.of(request.socket);
      if (connection === undefined || connection.isClosing || connection.inProgress > 0) return false;
      return mayUpgrade(main, request);
    }

    #take(handle: RequestListener, request: IncomingMessage, response: ServerResponse): void {
      const connection = this.#connections.of(request.socket);
      // Refused, or just closed.
      if (connection === undefined || connection.isClosing) return;
      // Node's parser also accepts RTSP methods, and Fastify would log each of them.
      if (!KNOWN_METHODS.has(request.method)) {
        connection.closeBehindReply();
        this.emit('clientError', new UnknownMethodError(), request.socket);
        return;
      }
      connection.begin(response);
      // Node discards the bytes behind an Upgrade that it ignores, so later replies would answer the wrong
      // requests.
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

    /** Closes the port if it is still open, and calls `done` when the last connection is closed. */
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

    /** Keeps connections with a request in progress; a later call closes them once they are idle. */
    override closeIdleConnections(): void {
      this.#connections.closeIdle();
      this.#handshakes?.cutOld();
    }
  };

const PlainDoorServer = doorServer(Server);

/** Loads TLS only if it is used: loading takes 25 ms and some megabytes. */
function secureDoorServer() {
  const { Server: SecureServer } = process.getBuiltinModule('node:https');
  return doorServer(SecureServer as unknown as ServerClass);
}

/** How long no client must have connected, in milliseconds. */
const QUIET = 20;
/** Time between two checks, in milliseconds; a waiting connection ends it early. */
const PAUSE = 1;
/**
 * The most that one pause counts as quiet, in milliseconds: during a longer one, this process and its clients
 * may have been suspended.
 */
const COUNTED = 2;
/**
 * If the last check took longer than this, the process may have been suspended after it, in milliseconds. A
 * check that finds nothing takes microseconds.
 */
const IMMEDIATE = 0.1;
/** After this time, one check without a new connection is enough, in milliseconds. */
const FIRST_LIMIT = 1_500;
/** The longest wait if clients keep connecting, in milliseconds. */
const MAX_WAIT = 2_000;

/**
 * Resolves as soon as no client has connected for a while, so that the port can be closed before the next one
 * connects: closing it makes the system reset connections that wait to be accepted, and Node accepts only one
 * per tick.
 *
 * @param accepted Returns the number of connections accepted so far.
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

/** The connection of a client that requests a WebSocket, and the first bytes after its request. */
export interface Upgrade {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** Whether the WebSockets of a path are accepted. */
type Takes = (path: string) => boolean;

/** Upgrades that routes may accept, by request. */
const OFFERED = new WeakMap<IncomingMessage, Upgrade>();

/** Decides which upgrade requests of a server reach their routes. */
class UpgradeRoutes {
  static readonly #all = new WeakMap<Server, UpgradeRoutes>();
  readonly #server: Server;
  readonly #paths = new Set<Takes>();

  static of(server: Server): UpgradeRoutes {
    const routes = UpgradeRoutes.#all.get(server) ?? new UpgradeRoutes(server);
    UpgradeRoutes.#all.set(server, routes);
    return routes;
  }

  private constructor(server: Server) {
    this.#server = server;
  }

  add(takes: Takes): void {
    if (this.#paths.size === 0) this.#server.on('upgrade', this.#onUpgrade);
    this.#paths.add(takes);
  }

  delete(takes: Takes): void {
    this.#paths.delete(takes);
    if (this.#paths.size === 0) this.#server.off('upgrade', this.#onUpgrade);
  }

  /** Whether a listener of `upgrade` handles the request. */
  reach(request: IncomingMessage): boolean {
    return this.#hasOthers() || this.#take(request);
  }

  #take({ url = '' }: IncomingMessage): boolean {
    const [path = ''] = originForm(url).split('?', 1);
    for (const takes of this.#paths) if (takes(path)) return true;
    return false;
  }

  /** Whether other upgrade listeners are attached to the server. */
  #hasOthers(): boolean {
    return this.#server.listenerCount('upgrade') > (this.#paths.size > 0 ? 1 : 0);
  }

  readonly #onUpgrade = (request: IncomingMessage, _stream: unknown, head: Buffer): void => {
    if (opensWebSocket(request) && this.#take(request))
      OFFERED.set(request, { socket: request.socket, head });
    else if (this.#hasOthers()) return;
    this.#answer(request);
  };

  /** Answers a request that Node has detached from HTTP like any other request. */
  #answer(request: IncomingMessage): void {
    const { socket } = request;
    // Node no longer handles errors and timeouts of the socket.
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch {
      // An earlier reply is still unsent, and no event tells when it is sent.
      socket.destroy();
      return;
    }
    response.once('finish', () => {
      if (response.statusCode !== 101) socket.destroySoon();
    });
    this.#server.emit('request', request, response);
  }
}

/** Whether a request opens a WebSocket (RFC 6455 4.1); `Connection` must name `upgrade`. */
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
 * Lets WebSocket requests for some paths reach their routes, including hooks; the route gets the connection
 * from `offeredUpgrade`. Other upgrade requests are answered as ordinary requests, or left to other listeners
 * of the server. Returns a function that reverts this.
 */
export function takeUpgrades(server: Server, takes: Takes): () => void {
  UpgradeRoutes.of(server).add(takes);
  return () => UpgradeRoutes.of(server).delete(takes);
}

/** Whether a request opens a WebSocket that would be accepted. */
function mayUpgrade(server: Server, request: IncomingMessage): boolean {
  return opensWebSocket(request) && UpgradeRoutes.of(server).reach(request);
}

/** The upgrade offered to a request's route; undefined if there is none. */
export function offeredUpgrade(request: IncomingMessage): Upgrade | undefined {
  return OFFERED.get(request);
}

/** The body of a reply to an upgrade. */
export class ProtocolSwitch {
  readonly #take: (switched: () => void) => void;

  /** `take` takes over the connection and calls `switched` once it has become a WebSocket. */
  constructor(take: (switched: () => void) => void) {
    this.#take = take;
  }

  /** Hands the connection over, and ends the recording of the response with status 101. */
  run(response: ServerResponse): void {
    this.#take(() => {
      response.statusCode = 101;
      noteEndless(response);
      response.emit('finish');
    });
  }
}

/** The refusal of a WebSocket request that no route accepts; undefined for other requests. */
export function refusedUpgrade(request: IncomingMessage): HttpProblem | undefined {
  if (request.headers.upgrade === undefined || !opensWebSocket(request)) return undefined;
  if (OFFERED.has(request)) return undefined;
  return new HttpProblem(400, 'NO_WEBSOCKET', 'There are no WebSockets here');
}
