import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Excludes the route from lists of routes, because it only refuses or answers OPTIONS. */
    readonly unlisted?: true;
  }
}

/** A path with the methods that it accepts, as registered with the router: `/users/:id`. */
export interface ListedRoute {
  readonly path: string;
  readonly methods: readonly string[];
}

/**
 * Collects the routes that are added to an instance from now on, also by its plugins. Call it before any is
 * added. The returned function lists them by path, in the order of registration.
 */
export function listRoutes(app: FastifyInstance): () => readonly ListedRoute[] {
  const routes = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.unlisted) return;
    const urls = config?.paths && Array.from(config.paths.values(), (path) => path.url);
    for (const each of urls ?? [url]) add(each, [method].flat());
  });
  function add(url: string, added: readonly string[]): void {
    // A path with and without a trailing slash is listed once.
    const bare = url.replace(/\/$/, '');
    const path = routes.has(bare) ? bare : url;
    const methods = routes.get(path) ?? new Set();
    for (const method of added) methods.add(method);
    routes.set(path, methods);
  }
  return () => Array.from(routes, ([path, methods]) => ({ path, methods: [...methods] }));
}
