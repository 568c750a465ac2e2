import type { FastifyContextConfig, FastifyInstance } from 'fastify';
import type { FastRoute } from './fast-exchange.ts';
import type { PlainRequest } from './plain-request.ts';

/** A route as it was added; its config is complete once everybody who watches routes has seen it. */
interface AddedRoute {
  readonly scope: FastifyInstance;
  readonly method: string;
  readonly url: string;
  readonly route: { readonly config?: FastifyContextConfig };
}

/** The fast routes of one method. */
interface MethodRoutes {
  readonly fixed: Map<string, FastRoute>;
  /** Paths that end with a parameter, by what stands before it. */
  readonly withParam: Map<string, FastRoute>;
}

const PARAM = /:\w+$/;
/** A wildcard, or a parameter that is not the whole last segment. */
const OTHER_PATTERN = /[:*(]/;

/** The routes that the fast path can answer: those of endpoints whose path is fixed or ends with one parameter. */
export class RouteTable {
  readonly #added: AddedRoute[] = [];
  readonly #methods = new Map<string, MethodRoutes>();

  /** Notes the routes that are added to an instance from now on, in its plugins too. */
  watch(app: FastifyInstance): void {
    const added = this.#added;
    app.addHook('onRoute', function (route) {
      for (const method of [route.method].flat()) added.push({ scope: this, method, url: route.url, route });
    });
  }

  /** Builds the table once all routes are there; leaves out those of scopes for which `isHooked` holds. */
  build(isHooked: (scope: FastifyInstance) => boolean): void {
    for (const { scope, method, url, route } of this.#added) {
      const { endpoint, record } = route.config ?? {};
      const before = url.replace(PARAM, '');
      const hasParam = before !== url;
      // Fastify adds a HEAD to each GET.
      if (endpoint === undefined || method === 'HEAD' || OTHER_PATTERN.test(before)) continue;
      if (isHooked(scope) || this.#isShadowed(method, url)) continue;
      const routes = this.#methods.get(method) ?? { fixed: new Map(), withParam: new Map() };
      this.#methods.set(method, routes);
      (hasParam ? routes.withParam : routes.fixed).set(before, { endpoint, record, url, hasParam });
    }
    this.#added.length = 0;
  }

  get isEmpty(): boolean {
    return this.#methods.size === 0;
  }

  /** The route of a request; undefined for one that Fastify is to find. */
  find({ url, method }: PlainRequest): FastRoute | undefined {
    const routes = this.#methods.get(method);
    if (routes === undefined) return undefined;
    const fixed = routes.fixed.get(url);
    if (fixed !== undefined) return fixed;
    const paramStart = url.lastIndexOf('/') + 1;
    const route = routes.withParam.get(url.slice(0, paramStart));
    return route !== undefined && isPlainSegment(url, paramStart) ? route : undefined;
  }

  /** Whether Fastify would give one of the route's requests to another route, whose path is more specific. */
  #isShadowed(method: string, url: string): boolean {
    const before = url.replace(PARAM, '');
    return this.#added.some((other) => {
      if (other.method !== method || other.route.config?.endpoint !== undefined) return false;
      const rest = other.url.startsWith(before) ? other.url.slice(before.length) : undefined;
      return before === url ? rest === '' : rest !== undefined && rest !== '' && !rest.includes('/');
    });
  }
}

/** Whether a last segment is there, needs no decoding and has no query behind it. */
function isPlainSegment(url: string, start: number): boolean {
  if (start === url.length) return false;
  for (let i = start; i < url.length; i++) {
    const c = url.charCodeAt(i);
    if (c === 0x25 || c === 0x3f || c === 0x3b) return false;
  }
  return true;
}
