import {
  type IncomingMessage,
  METHODS,
  type RequestListener,
  Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { TlsOptions } from 'node:tls';
import type { Connections } from '../connections/connections.ts';
import { LIMITS } from '../limits.ts';
import { Handshakes } from '../tls/handshakes.ts';
import { connectionEvent } from './connection-event.ts';
import { untilQuiet } from './until-quiet.ts';
import { mayUpgrade } from './upgrades.ts';

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
export interface DoorServerOptions {
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
      await untilQuiet(() => this.#connections.accepted);
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
