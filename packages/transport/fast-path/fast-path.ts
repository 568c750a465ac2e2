import { channel, tracingChannel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { takesEventStream } from '../../../src/core/negotiation.ts';
import type { BodyBudget } from '../body/body-budget.ts';
import { connectionEvent } from '../server/listen.ts';
import type { PlainRequest } from './fast-connection.ts';
import { FastConnection, type FastRouter, nodeReader } from './fast-connection.ts';
import { FastRequestContext, type FastRequestOptions, type FastRoute } from './fast-context.ts';
import { isPlainQuery, pathOf } from './plain-query.ts';
import { ReplyHeads } from './reply-heads.ts';

/**
 * Tracers subscribe to these channels. Node publishes only requests that its own parser reads, and Fastify
 * those that it handles.
 */
const FASTIFY_HANDLERS = tracingChannel('fastify.request.handler');
const TRACED = ['request.start', 'response.created', 'response.finish'].map((name) =>
  channel(`http.server.${name}`),
);

/**
 * The second transport of endpoints. It answers plain requests directly on the socket, byte for byte as Node
 * and Fastify would, and passes everything else on to them unchanged.
 */
export class FastPath implements FastRouter<FastRoute> {
  readonly #options: FastRequestOptions;
  readonly #routes = new RouteTable();
  readonly #hooks = new HookWatch();
  #isInstalled = false;
  /** Set if Node's internals differ from those that the fast path knows. */
  #isClosed = false;

  /** Call it before any route is added to the instance. */
  constructor(app: FastifyInstance, options: Omit<FastRequestOptions, 'heads'>) {
    this.#options = { ...options, heads: new ReplyHeads() };
    this.#routes.watch(app);
  }

  /**
   * From now on, a hook added to the instance or to one of its scopes disables the fast path for their
   * routes.
   */
  watchHooks(app: FastifyInstance): void {
    this.#hooks.watch(app);
  }

  /** Installs the fast path in front of Fastify. Call it once the instance is ready and before it listens. */
  install(app: FastifyInstance): void {
    const { server } = app;
    // The user's id generator must be called for each request. Fastify's types omit `genReqId`.
    if ((app as { genReqId?: unknown }).genReqId !== this.#options.nextId) return;
    // A tracer may have wrapped the server's events.
    if (server.listenerCount('request') > 1 || server.emit !== EventEmitter.prototype.emit) return;
    this.#routes.build((scope) => this.#hooks.isHooked(scope));
    if (this.#routes.isEmpty) return;
    this.#isInstalled = true;
    this.serve(server);
  }

  /**
   * Answers plain requests to a server if the fast path is installed. Call it before the server has
   * connections.
   */
  serve(server: Server): void {
    if (this.#isInstalled) server.on(connectionEvent(server), (socket: Socket) => this.#attach(socket));
  }

  get bodyBudget(): BodyBudget {
    return this.#options.bodyBudget;
  }

  find(request: PlainRequest): FastRoute | undefined {
    if (this.#isClosed || this.#options.isDraining() || isTraced()) return undefined;
    // Fastify handles event streams and refuses unknown hosts.
    if (takesEventStream(request.headers.accept) || this.#asksForStranger(request)) return undefined;
    const route = this.#routes.find(request);
    return route?.endpoint.body?.(request) === 'stream' ? undefined : route;
  }

  /** Whether the request may be for an unknown host; Fastify then decides. */
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
    new FastRequestContext(connection, request, route, chunk, this.#options).run();
  }

  #attach(socket: Socket): void {
    const connection = this.#options.connections.of(socket);
    // The connection was refused because of a connection limit.
    if (this.#isClosed || connection === undefined) return;
    const reader = nodeReader(socket);
    if (reader === undefined) this.#close('unknown listeners of a connection');
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

/** Hooks of the start and the stop. All other hooks see requests, or can add a hook that does. */
const LIFECYCLE: ReadonlySet<string> = new Set(['onReady', 'onListen', 'preClose', 'onClose']);

/** Tracks which scopes have hooks that see requests, which the fast path would skip. */
class HookWatch {
  readonly #hooked = new WeakSet<object>();
  #app: FastifyInstance | undefined;
  #errorHandler: unknown;

  /** Tracks hooks added from now on, in all scopes: scopes inherit `addHook` from the instance. */
  watch(app: FastifyInstance): void {
    const { addHook } = app;
    this.#app = app;
    this.#errorHandler = app.errorHandler;
    const hooked = this.#hooked;
    app.addHook = function (this: FastifyInstance, ...args: Parameters<typeof addHook>) {
      if (!LIFECYCLE.has(args[0])) hooked.add(this);
      return addHook.apply(this, args);
    } as typeof addHook;
  }

  /** Whether a hook of the scope or of an enclosing scope sees the scope's requests. */
  isHooked(scope: FastifyInstance): boolean {
    // A scope's prototype is its enclosing scope.
    for (let each: object | null = scope; each !== null; each = Object.getPrototypeOf(each)) {
      if (this.#hooked.has(each)) return true;
    }
    return this.#hasOtherErrors(scope);
  }

  /**
   * Whether the instance's error handler, which the scope inherits, was replaced: the fast path uses only the
   * door's.
   */
  #hasOtherErrors({ errorHandler }: FastifyInstance): boolean {
    return errorHandler === this.#app?.errorHandler && errorHandler !== this.#errorHandler;
  }
}

/** A route as added; its config is complete once all `onRoute` hooks have run. */
interface AddedRoute {
  readonly scope: FastifyInstance;
  readonly method: string;
  readonly url: string;
  target(): Partial<Pick<FastRoute, 'endpoint' | 'record'>>;
}

/** The fast routes of one method. */
interface MethodRoutes {
  readonly fixed: Map<string, FastRoute>;
  /** Paths that end with a parameter, by the part before it. */
  readonly withParam: Map<string, FastRoute>;
}

const PARAM = /:\w+$/;
/** A wildcard, or a parameter that is not the whole last segment. */
const OTHER_PATTERN = /[:*(]/;

/** The routes that the fast path can answer: endpoints whose path is fixed or ends with one parameter. */
class RouteTable {
  readonly #added: AddedRoute[] = [];
  readonly #methods = new Map<string, MethodRoutes>();

  /** Collects the routes that are added from now on, including those of plugins. */
  watch(app: FastifyInstance): void {
    const added = this.#added;
    app.addHook('onRoute', function (route) {
      const own = { url: route.url, target: () => route.config ?? {} };
      const { paths } = route.config ?? {};
      const several = paths && Array.from(paths.values(), (path) => ({ url: path.url, target: () => path }));
      for (const method of [route.method].flat())
        for (const each of several ?? [own]) added.push({ scope: this, method, ...each });
    });
  }

  /** Builds the table once all routes are added, without the scopes for which `isHooked` returns true. */
  build(isHooked: (scope: FastifyInstance) => boolean): void {
    const others = this.#added.filter(({ target }) => target().endpoint === undefined);
    for (const { scope, method, url, target } of this.#added) {
      const { endpoint, record } = target();
      const before = url.replace(PARAM, '');
      const hasParam = before !== url;
      // Fastify answers HEAD.
      if (endpoint === undefined || method === 'HEAD' || OTHER_PATTERN.test(before)) continue;
      if (isHooked(scope) || isShadowed(others, method, url)) continue;
      const routes = this.#methods.get(method) ?? { fixed: new Map(), withParam: new Map() };
      this.#methods.set(method, routes);
      (hasParam ? routes.withParam : routes.fixed).set(before, { endpoint, record, url, hasParam });
    }
    this.#added.length = 0;
  }

  get isEmpty(): boolean {
    return this.#methods.size === 0;
  }

  /** The route of a request; undefined if Fastify has to route it. */
  find({ url, method }: PlainRequest): FastRoute | undefined {
    const routes = this.#methods.get(method);
    if (routes === undefined) return undefined;
    const fixed = routes.fixed.get(url);
    if (fixed !== undefined) return fixed;
    const path = pathOf(url);
    if (path !== url && !isPlainQuery(url.slice(path.length + 1))) return undefined;
    if (path !== url && routes.fixed.has(path)) return routes.fixed.get(path);
    const paramStart = path.lastIndexOf('/') + 1;
    const route = routes.withParam.get(path.slice(0, paramStart));
    return route !== undefined && isPlainSegment(path, paramStart) ? route : undefined;
  }
}

/** Whether Fastify would give some of the route's requests to another route, which is more specific. */
function isShadowed(others: readonly AddedRoute[], method: string, url: string): boolean {
  const before = url.replace(PARAM, '');
  return others.some((other) => {
    if (other.method !== method) return false;
    const rest = other.url.startsWith(before) ? other.url.slice(before.length) : undefined;
    return before === url ? rest === '' : rest !== undefined && rest !== '' && !rest.includes('/');
  });
}

/** Whether the last segment is not empty and needs no decoding. */
function isPlainSegment(url: string, start: number): boolean {
  if (start === url.length) return false;
  for (let i = start; i < url.length; i++) {
    const c = url.charCodeAt(i);
    if (c === 0x25 || c === 0x3f || c === 0x3b) return false;
  }
  return true;
}
