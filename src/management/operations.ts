import type { FastifyInstance, RouteHandlerMethod } from 'fastify';
import { COMMON_HEADERS } from './json-reply.ts';
import { METHOD_NOT_ALLOWED, refuse } from './management-errors.ts';

/** What a path of this door answers, by method. */
export interface Operations {
  readonly GET?: RouteHandlerMethod | undefined;
  /** The reply of GET without its body when absent. */
  readonly HEAD?: RouteHandlerMethod;
  readonly POST?: RouteHandlerMethod | undefined;
  readonly DELETE?: RouteHandlerMethod | undefined;
}

/**
 * Adds a path with what it answers. OPTIONS tells its methods, as clients look for it before they offer
 * to write; every other method gets 405 before its body is looked at.
 */
export function addOperations(scope: FastifyInstance, url: string, operations: Operations): void {
  const { GET, HEAD, POST, DELETE } = operations;
  const methods: string[] = [];
  if (GET !== undefined) {
    methods.push('GET', 'HEAD');
    scope.route({ method: 'GET', url, exposeHeadRoute: HEAD === undefined, handler: GET });
  }
  if (HEAD !== undefined) scope.route({ method: 'HEAD', url, handler: HEAD });
  if (POST !== undefined) {
    methods.push('POST');
    scope.route({ method: 'POST', url, handler: POST });
  }
  if (DELETE !== undefined) {
    methods.push('DELETE');
    scope.route({ method: 'DELETE', url, handler: DELETE });
  }
  const allow = [...methods, 'OPTIONS'].join(', ');
  scope.route({
    method: 'OPTIONS',
    url,
    config: { unlisted: true },
    handler: (_request, reply) => reply.headers(COMMON_HEADERS).header('allow', allow).send(),
  });
  refuseOthers(scope, url, allow, methods);
}

function refuseOthers(scope: FastifyInstance, url: string, allow: string, methods: readonly string[]): void {
  const handler: RouteHandlerMethod = (request, reply) =>
    refuse(METHOD_NOT_ALLOWED, request, reply.header('allow', allow));
  scope.route({
    url,
    method: scope.supportedMethods.filter((method) => method !== 'OPTIONS' && !methods.includes(method)),
    config: { unlisted: true },
    exposeHeadRoute: false,
    onRequest(request, reply) {
      handler.call(scope, request, reply);
    },
    handler,
  });
}
