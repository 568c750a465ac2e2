import { channel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyContextConfig, FastifyInstance } from 'fastify';
import { LIMITS } from '../limits.ts';
import { DirectConnection, type Lane } from './connection.ts';
import { DirectExchange, type DirectOptions } from './fast-exchange.ts';
import type { PlainRequest } from './plain-request.ts';
import { ReplyHeads } from './reply-heads.ts';

/**
 * Answers a plain request of a route without the framework, or returns false and leaves it alone. It takes only what
 * it can answer as the route's own handler would, byte for byte; whatever is unusual goes to the framework.
 */
export type DirectHandler = (exchange: DirectExchange) => boolean;

/** Told of each reply: the method, the status, and how long it took in milliseconds. */
export type ReplyRecorder = (method: string, status: number, milliseconds: number) => void;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route's part in the direct lane: its path is fixed, or ends with one parameter. */
    readonly direct?: DirectHandler | undefined;
    record?: ReplyRecorder;
  }
}

interface DirectRoute {
  readonly direct: DirectHandler;
  readonly record: ReplyRecorder | undefined;
  readonly hasParam: boolean;
}

/** The routes of one method that have a part in the lane. */
interface DirectRoutes {
  readonly fixed: Map<string, DirectRoute>;
  /** Of paths that end with a parameter, by the part before it. */
  readonly withParam: Map<string, DirectRoute>;
}

/** A route as it was added; its config is complete once all who watch routes have seen it. */
interface SeenRoute {
  readonly method: string;
  readonly url: string;
  readonly route: { readonly config?: FastifyContextConfig };
}

/** Hooks of the start and the stop. All others see requests, or can give a route a hook that does. */
const HARMLESS_HOOKS: ReadonlySet<string> = new Set(['onReady', 'onListen', 'preClose', 'onClose']);

const PARAM = /:\w+$/;

/** Who traces requests hears of them here; Node tells of those that its parser has read. */
const TRACED = ['request.start', 'response.created', 'response.finish'].map((name) =>
  channel(`http.server.${name}`),
);

/**
 * The way around the framework and Node's parser for the few requests that most of the load consists of. A route has a
 * part in it by `config.direct`. The lane stays closed once somebody adds a hook to the instance that can see requests.
 */
export class DirectLane implements Lane<DirectRoute> {
  readonly #options: DirectOptions;
  readonly #seen: SeenRoute[] = [];
  readonly #routes = new Map<string, DirectRoutes>();
  readonly #connections = new Set<DirectConnection<DirectRoute>>();
  #closeIdle = (): void => {};
  /** Somebody wants idle connections closed, and the lane was busy. */
  #idleAreToGo = false;
  #closed = false;

  /** Call it before any route is added. */
  constructor(app: FastifyInstance, options: Omit<DirectOptions, 'heads'>) {
    this.#options = { ...options, heads: new ReplyHeads() };
    app.addHook('onRoute', (route) => {
      for (const method of [route.method].flat()) this.#seen.push({ method, url: route.url, route });
    });
  }

  /** From now on a hook that is added to the instance closes the lane; those that it has are the lane's business. */
  watchHooks(app: FastifyInstance): void {
    const addHook = app.addHook;
    const watching = (instance: FastifyInstance, name: string) => {
      if (instance === app && !HARMLESS_HOOKS.has(name)) this.#closed = true;
    };
    app.addHook = function (this: FastifyInstance, ...args: Parameters<typeof addHook>) {
      watching(this, args[0]);
      return addHook.apply(this, args);
    } as typeof addHook;
  }

  /** Puts the lane before the framework, once the instance is ready and before it listens. */
  install(app: FastifyInstance): void {
    const { server } = app;
    // Who gives requests other ids looks at each. The framework's types leave it out.
    const numbered = (app as { genReqId?: unknown }).genReqId === this.#options.nextId;
    // Who traces requests may have put something in the way of all events.
    const watched = server.listenerCount('request') > 1 || server.emit !== EventEmitter.prototype.emit;
    if (this.#closed || !numbered || watched) return;
    this.#readRoutes();
    if (this.#routes.size === 0) return;
    this.#sparesBusyConnections(server);
    server.on('connection', (socket: Socket) => this.#attach(socket));
    server.once('listening', () => {
      const check = setInterval(() => {
        for (const connection of this.#connections) connection.extend();
      }, LIMITS.checkInterval).unref();
      server.once('close', () => clearInterval(check));
    });
  }

  /** Node takes a connection for idle while the lane has a request of it: who closes idle ones has it wait for that. */
  #sparesBusyConnections(server: Server): void {
    const closeIdle = server.closeIdleConnections.bind(server);
    this.#closeIdle = () => {
      this.#idleAreToGo = this.#isBusy();
      if (!this.#idleAreToGo) closeIdle();
    };
    server.closeIdleConnections = this.#closeIdle;
  }

  #isBusy(): boolean {
    for (const { busy } of this.#connections) if (busy) return true;
    return false;
  }

  #attach(socket: Socket): void {
    const [parse, ...others] = socket.listeners('data') as ((chunk: Buffer) => void)[];
    // Somebody else reads along, or Node reads in another way than we know.
    if (parse === undefined || others.length > 0) return;
    const connection = new DirectConnection<DirectRoute>(socket, parse, this);
    this.#connections.add(connection);
    socket.once('close', () => {
      this.#connections.delete(connection);
      this.onFree();
    });
  }

  onFree(): void {
    if (this.#idleAreToGo) this.#closeIdle();
  }

  #readRoutes(): void {
    for (const { method, url, route } of this.#seen) {
      const direct = route.config?.direct;
      // The framework adds a HEAD to each GET.
      if (direct === undefined || method === 'HEAD' || this.#isShadowed(method, url)) continue;
      const routes = this.#routes.get(method) ?? { fixed: new Map(), withParam: new Map() };
      this.#routes.set(method, routes);
      const before = url.replace(PARAM, '');
      const hasParam = before !== url;
      (hasParam ? routes.withParam : routes.fixed).set(before, {
        direct,
        record: route.config?.record,
        hasParam,
      });
    }
    this.#seen.length = 0;
  }

  /** Whether the framework would give one of the route's requests to another route, whose path says more. */
  #isShadowed(method: string, url: string): boolean {
    const before = url.replace(PARAM, '');
    return this.#seen.some((other) => {
      if (other.method !== method || other.route.config?.direct !== undefined) return false;
      const rest = other.url.startsWith(before) ? other.url.slice(before.length) : undefined;
      return before === url ? rest === '' : rest !== undefined && rest !== '' && !rest.includes('/');
    });
  }

  find({ url, method }: PlainRequest): DirectRoute | undefined {
    const routes = this.#routes.get(method);
    if (routes === undefined || this.#options.isDraining() || isTraced()) return undefined;
    return routes.fixed.get(url) ?? routes.withParam.get(url.slice(0, url.lastIndexOf('/') + 1));
  }

  take(
    connection: DirectConnection<DirectRoute>,
    request: PlainRequest,
    { direct, record, hasParam }: DirectRoute,
    chunk: Buffer,
  ): boolean {
    const param = hasParam ? request.url.slice(request.url.lastIndexOf('/') + 1) : '';
    if (hasParam && param === '') return false;
    const exchange = new DirectExchange(connection, request, chunk, param, record, this.#options);
    connection.begin(exchange);
    try {
      if (direct(exchange)) return true;
      connection.leave();
      return false;
    } catch (error) {
      exchange.fail(error);
      return true;
    }
  }
}

function isTraced(): boolean {
  return TRACED.some(({ hasSubscribers }) => hasSubscribers);
}
