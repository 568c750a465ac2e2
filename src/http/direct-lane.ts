import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
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

/** Hooks that see requests; the others only see routes, starts and stops. */
const REQUEST_HOOKS: ReadonlySet<string> = new Set([
  'onRequest',
  'preParsing',
  'preValidation',
  'preHandler',
  'preSerialization',
  'onSend',
  'onResponse',
  'onError',
  'onTimeout',
  'onRequestAbort',
]);

/**
 * The way around the framework for the few requests that most of the load consists of: it costs a third of what
 * node:http itself takes. A route has a part in it by `config.direct`. The lane stays closed once somebody adds a
 * hook to the instance that has to see requests.
 */
export class DirectLane {
  readonly #options: DirectOptions;
  /** By method and path; of one with a parameter, the part before it. */
  readonly #routes = new Map<string, DirectRoute>();
  #closed = false;

  /** Call it before any route is added. */
  constructor(app: FastifyInstance, options: DirectOptions) {
    this.#options = options;
    app.addHook('onRoute', ({ url, method, config }) => {
      if (config?.direct === undefined) return;
      const path = url.replace(/:\w+$/, '');
      for (const each of [method].flat()) {
        // The framework adds a HEAD to each GET.
        if (each === 'HEAD') continue;
        this.#routes.set(`${each} ${path}`, { direct: config.direct, record: config.record });
      }
    });
  }

  /** From now on a hook that is added to the instance closes the lane; those that it has are the lane's business. */
  watchHooks(app: FastifyInstance): void {
    const addHook = app.addHook;
    const watching = (instance: FastifyInstance, name: string) => {
      if (instance === app && REQUEST_HOOKS.has(name)) this.#closed = true;
    };
    app.addHook = function (this: FastifyInstance, ...args: Parameters<typeof addHook>) {
      watching(this, args[0]);
      return addHook.apply(this, args);
    } as typeof addHook;
  }

  /** Puts the lane before the framework, once the instance is ready. */
  install({ server }: FastifyInstance): void {
    const [framework, ...others] = server.listeners('request') as RequestListener[];
    if (this.#closed || this.#routes.size === 0 || framework === undefined || others.length > 0) return;
    server.off('request', framework);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (!this.#take(request, response, framework)) framework(request, response);
    });
  }

  #take(request: IncomingMessage, response: ServerResponse, framework: RequestListener): boolean {
    const { url = '', method } = request;
    let route = this.#routes.get(`${method} ${url}`);
    let param = '';
    if (route === undefined) {
      const end = url.lastIndexOf('/') + 1;
      param = url.slice(end);
      route = param === '' ? undefined : this.#routes.get(`${method} ${url.slice(0, end)}`);
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
