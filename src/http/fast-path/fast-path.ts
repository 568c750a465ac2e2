import { channel, tracingChannel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { takesEventStream } from '../accept.ts';
import type { BodyBudget } from '../body/body-budget.ts';
import { connectionEvent } from '../server/connection-event.ts';
import { FastConnection, type FastRouter } from './fast-connection.ts';
import { FastExchange, type FastExchangeOptions, type FastRoute } from './fast-exchange.ts';
import { HookWatch } from './hook-watch.ts';
import { nodeReader } from './node-reader.ts';
import type { PlainRequest } from './plain-request.ts';
import { ReplyHeads } from './reply-heads.ts';
import { RouteTable } from './route-table.ts';

/** Tracers subscribe to these; Node publishes the requests that its own parser has read, Fastify those that it handles. */
const FASTIFY_HANDLERS = tracingChannel('fastify.request.handler');
const TRACED = ['request.start', 'response.created', 'response.finish'].map((name) =>
  channel(`http.server.${name}`),
);

const FORWARDED = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'];

/**
 * The second transport of endpoints: it answers plain requests on the socket, without Node's parser and Fastify, byte
 * for byte as they would. Everything else goes to them as it came.
 */
export class FastPath implements FastRouter<FastRoute> {
  readonly #options: FastExchangeOptions;
  readonly #routes = new RouteTable();
  readonly #hooks = new HookWatch();
  #isInstalled = false;
  /** Node's internals are not as known. */
  #isClosed = false;

  /** Call it before any route is added to the instance. */
  constructor(app: FastifyInstance, options: Omit<FastExchangeOptions, 'heads'>) {
    this.#options = { ...options, heads: new ReplyHeads() };
    this.#routes.watch(app);
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
    this.#isInstalled = true;
    this.serve(server);
  }

  /** Answers plain requests to a server, if the fast path is installed. Call it before a client connects. */
  serve(server: Server): void {
    if (this.#isInstalled) server.on(connectionEvent(server), (socket: Socket) => this.#attach(socket));
  }

  get bodyBudget(): BodyBudget {
    return this.#options.bodyBudget;
  }

  find(request: PlainRequest): FastRoute | undefined {
    if (this.#isClosed || this.#options.isDraining() || isTraced()) return undefined;
    // Event streams are Fastify's, and so are refusals of unknown hosts.
    if (takesEventStream(request.headers.accept) || this.#asksForStranger(request)) return undefined;
    if (this.#isRecordedForwarded(request)) return undefined;
    const route = this.#routes.find(request);
    return route?.endpoint.streamed?.takes(request) === true ? undefined : route;
  }

  /** Whether a proxy may say how the request is to be recorded, which Fastify knows to read. */
  #isRecordedForwarded({ headers }: PlainRequest): boolean {
    const { forwarding, recorder } = this.#options;
    if (!forwarding.trustsProxies || recorder() === undefined) return false;
    return FORWARDED.some((name) => headers[name] !== undefined);
  }

  /** Whether the request may be for another host, which Fastify then decides. */
  #asksForStranger({ headers }: PlainRequest): boolean {
    const ownHosts = this.#options.ownHosts();
    if (ownHosts === undefined) return false;
    const { host = '', 'x-forwarded-host': forwarded } = headers;
    if (!ownHosts.has(host)) return true;
    return (
      forwarded !== undefined && this.#options.forwarding.trustsProxies && !ownHosts.has(String(forwarded))
    );
  }

  answer(
    connection: FastConnection<FastRoute>,
    request: PlainRequest,
    route: FastRoute,
    chunk: Buffer,
  ): void {
    new FastExchange(connection, request, route, chunk, this.#options).run();
  }

  #attach(socket: Socket): void {
    const connection = this.#options.connections.of(socket);
    // Refused for the limit of connections.
    if (this.#isClosed || connection === undefined) return;
    const reader = nodeReader(socket);
    if (reader === undefined) this.#close('a connection is not read as known');
    else new FastConnection<FastRoute>(connection, reader, this);
  }

  /** Leaves all further requests to Fastify. */
  #close(reason: string): void {
    this.#isClosed = true;
    this.#options.log.warn({ reason, node: process.version }, 'fast path off: unknown internals of Node');
  }
}

function isTraced(): boolean {
  return FASTIFY_HANDLERS.hasSubscribers || TRACED.some(({ hasSubscribers }) => hasSubscribers);
}
