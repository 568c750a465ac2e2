import { channel, tracingChannel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { takesEventStream } from '../accept.ts';
import { LIMITS } from '../limits.ts';
import { FastConnection, type FastRouter } from './fast-connection.ts';
import { FastExchange, type FastExchangeOptions, type FastRoute } from './fast-exchange.ts';
import { HookWatch } from './hook-watch.ts';
import { type NodeInternals, nodeInternals } from './node-internals.ts';
import type { PlainRequest } from './plain-request.ts';
import { ReplyHeads } from './reply-heads.ts';
import { RouteTable } from './route-table.ts';

/** Tracers subscribe to these; Node publishes the requests that its own parser has read, Fastify those that it handles. */
const FASTIFY_HANDLERS = tracingChannel('fastify.request.handler');
const TRACED = ['request.start', 'response.created', 'response.finish'].map((name) =>
  channel(`http.server.${name}`),
);

/**
 * The second transport of endpoints: it answers plain requests on the socket, without Node's parser and Fastify, byte
 * for byte as they would. Everything else goes to them as it came.
 */
export class FastPath implements FastRouter<FastRoute> {
  readonly #options: FastExchangeOptions;
  readonly #internals: NodeInternals;
  readonly #routes = new RouteTable();
  readonly #hooks = new HookWatch();
  readonly #connections = new Set<FastConnection<FastRoute>>();
  #closeIdleConnections = (): void => {};
  /** Idle connections are to be closed once no request is being answered. */
  #closesIdle = false;
  /** `unproven` until a request has shown that Node's internals are as known. */
  #state: 'unproven' | 'open' | 'closed' = 'unproven';

  /** Call it before any route is added to the instance. */
  constructor(
    app: FastifyInstance,
    options: Omit<FastExchangeOptions, 'heads'>,
    internals: NodeInternals = nodeInternals,
  ) {
    this.#internals = internals;
    this.#options = { ...options, heads: new ReplyHeads() };
    this.#routes.watch(app);
    // The first request of each connection comes this way.
    app.addHook('onRequest', (request, _reply, done) => {
      if (this.#state === 'unproven') this.#prove(request.raw.socket);
      done();
    });
  }

  /** From now on a hook that is added to the instance, or to a scope of it, closes the fast path for their routes. */
  watchHooks(app: FastifyInstance): void {
    this.#hooks.watch(app);
  }

  /** Puts the fast path before Fastify, once the instance is ready and before it listens. */
  install(app: FastifyInstance): void {
    const { server } = app;
    // A user's function for ids is called for each request. Fastify's types leave it out.
    if ((app as { genReqId?: unknown }).genReqId !== this.#options.nextId) return;
    // A tracer may have wrapped all events.
    if (server.listenerCount('request') > 1 || server.emit !== EventEmitter.prototype.emit) return;
    this.#routes.build((scope) => this.#hooks.isHooked(scope));
    if (this.#routes.isEmpty) return;
    this.#spareBusyConnections(server);
    server.on('connection', (socket: Socket) => this.#attach(socket));
    server.once('listening', () => {
      const check = setInterval(() => {
        for (const connection of this.#connections) connection.extendTimeout();
      }, LIMITS.checkInterval).unref();
      server.once('close', () => clearInterval(check));
    });
  }

  find(request: PlainRequest): FastRoute | undefined {
    if (this.#state !== 'open' || this.#options.isDraining() || isTraced()) return undefined;
    // Event streams are Fastify's.
    if (takesEventStream(request.headers.accept)) return undefined;
    if (this.#isRecordedForwarded(request)) return undefined;
    return this.#routes.find(request);
  }

  /** Whether a proxy may say how the request is to be recorded, which Fastify knows to read. */
  #isRecordedForwarded({ headers }: PlainRequest): boolean {
    const { trustsProxies, exchangeLog } = this.#options;
    if (!trustsProxies || exchangeLog() === undefined) return false;
    return headers['x-forwarded-host'] !== undefined || headers['x-forwarded-proto'] !== undefined;
  }

  answer(
    connection: FastConnection<FastRoute>,
    request: PlainRequest,
    route: FastRoute,
    chunk: Buffer,
  ): void {
    const exchange = new FastExchange(connection, request, route, chunk, this.#options);
    connection.lease(exchange);
    exchange.run();
  }

  onIdle(): void {
    if (this.#closesIdle) this.#closeIdleConnections();
  }

  /** Node takes a connection for idle while the fast path answers on it: closing idle ones waits for the reply. */
  #spareBusyConnections(server: Server): void {
    const closeIdle = server.closeIdleConnections.bind(server);
    this.#closeIdleConnections = () => {
      this.#closesIdle = this.#isBusy();
      if (!this.#closesIdle) closeIdle();
    };
    server.closeIdleConnections = this.#closeIdleConnections;
  }

  #isBusy(): boolean {
    for (const { busy } of this.#connections) if (busy) return true;
    return false;
  }

  #attach(socket: Socket): void {
    if (this.#state === 'closed') return;
    const parse = this.#internals.parserOf(socket);
    if (parse === undefined) {
      this.#close('a connection is not read by one listener');
      return;
    }
    const connection = new FastConnection<FastRoute>(socket, parse, this);
    this.#connections.add(connection);
    socket.once('close', () => {
      this.#connections.delete(connection);
      this.onIdle();
    });
  }

  #prove(socket: Socket): void {
    if (this.#internals.replyInProgress(socket) === undefined)
      this.#close('a connection does not name its reply in progress');
    else this.#state = 'open';
  }

  /** Leaves all further requests to Fastify. */
  #close(reason: string): void {
    this.#state = 'closed';
    this.#options.log.warn({ reason, node: process.version }, 'fast path off: unknown internals of Node');
  }
}

function isTraced(): boolean {
  return FASTIFY_HANDLERS.hasSubscribers || TRACED.some(({ hasSubscribers }) => hasSubscribers);
}
