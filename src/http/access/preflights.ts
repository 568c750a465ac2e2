import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type CorsPolicy, DEFAULT_MAX_AGE } from './cors.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'];

/**
 * Answers preflights of a door, in a scope of their own: a hook in the scope of the door would keep the fast path from its
 * routes. `addOptions` adds the door's own replies to OPTIONS, which are those to no preflight.
 */
export function addPreflights(
  app: FastifyInstance,
  policy: CorsPolicy | undefined,
  addOptions: (scope: FastifyInstance) => void = () => {},
): void {
  if (policy === undefined) {
    addOptions(app);
    return;
  }
  const { origins, credentials = false, maxAge = DEFAULT_MAX_AGE } = policy.options;
  const shared = { origin: [...origins], credentials, maxAge, methods: METHODS, strictPreflight: false };
  app.register(async (scope) => {
    // Loaded only where it is used.
    const { default: cors } = await import('@fastify/cors');
    await scope.register(cors, {
      delegator: async (request: FastifyRequest) => ({ ...shared, preflight: isPreflight(request) }),
    });
    addOptions(scope);
  });
}

function isPreflight({ headers }: FastifyRequest): boolean {
  return headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}
