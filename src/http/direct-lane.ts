import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FastifyContextConfig, FastifyInstance } from 'fastify';
import { DirectExchange, type DirectOptions } from './direct-exchange.ts';

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

/**
 * The way around the framework for the few requests that most of the load consists of: it costs a third of what
 * node:http itself takes. A route has a part in it by `config.direct`. The lane stays closed once somebody adds a
 * hook to the instance that can see requests.
 */
export class DirectLane {
  readonly #options: DirectOptions;
  readonly #seen: SeenRoute[] = [];
  readonly #routes = new Map<string, DirectRoutes>();
  #closed = false;

  /** Call it before any route is added. */
  constructor(app: FastifyInstance, options: DirectOptions) {
    this.#options = options;
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

  /** Puts the lane before the framework, once the instance is ready. */
  install(app: FastifyInstance): void {
    const { server } = app;
    const [framework, ...others] = server.listeners('request') as RequestListener[];
    // Who gives requests other ids looks at each. The framework's types leave it out.
    const numbered = (app as { genReqId?: unknown }).genReqId === this.#options.nextId;
    if (this.#closed || !numbered || framework === undefined || others.length > 0) return;
    this.#readRoutes();
    if (this.#routes.size === 0) return;
    server.off('request', framework);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (!this.#take(request, response, framework)) framework(request, response);
    });
  }

  #readRoutes(): void {
    for (const { method, url, route } of this.#seen) {
      const direct = route.config?.direct;
      // The framework adds a HEAD to each GET.
      if (direct === undefined || method === 'HEAD' || this.#isShadowed(method, url)) continue;
      const routes = this.#routes.get(method) ?? { fixed: new Map(), withParam: new Map() };
      this.#routes.set(method, routes);
      const before = url.replace(PARAM, '');
      (before === url ? routes.fixed : routes.withParam).set(before, {
        direct,
        record: route.config?.record,
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

  #take(request: IncomingMessage, response: ServerResponse, framework: RequestListener): boolean {
    const { url = '', method = '' } = request;
    const routes = this.#routes.get(method);
    if (routes === undefined) return false;
    let route = routes.fixed.get(url);
    let param = '';
    if (route === undefined) {
      const end = url.lastIndexOf('/') + 1;
      param = url.slice(end);
      route = param === '' ? undefined : routes.withParam.get(url.slice(0, end));
      if (route === undefined) return false;
    }
    if (this.#options.mustSee(request)) return false;
    const { direct, record } = route;
    const exchange = new DirectExchange(request, response, param, framework, record, this.#options);
    try {
      return direct(exchange);
    } catch (error) {
      exchange.fail(error);
      return true;
    }
  }
}
