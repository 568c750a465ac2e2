import type { FastifyInstance, RouteHandlerMethod } from 'fastify';
import { METHOD_NOT_ALLOWED, refuse } from './error-format.ts';

/** What can be done with a path of this door. */
export const ALLOWED = 'GET, HEAD';

/** Adds a path that is read (GET and HEAD); every other method gets 405 before its body is looked at. */
export function addReadRoute(scope: FastifyInstance, url: string, handler: RouteHandlerMethod): void {
  scope.route({ method: 'GET', url, exposeHeadRoute: true, handler });
  const refuseMethod: RouteHandlerMethod = (request, reply) =>
    refuse(METHOD_NOT_ALLOWED, request, reply.header('allow', ALLOWED));
  scope.route({
    url,
    method: scope.supportedMethods.filter((method) => method !== 'GET' && method !== 'HEAD'),
    onRequest(request, reply) {
      refuseMethod.call(scope, request, reply);
    },
    handler: refuseMethod,
  });
}
