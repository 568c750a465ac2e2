import type { FastifyInstance, RouteHandlerMethod } from 'fastify';
import { addOperations } from './operations.ts';

/** What can be done with a path that is read. */
export const ALLOWED = 'GET, HEAD, OPTIONS';

/** Adds a path that is only read: GET, and HEAD with the reply of GET. */
export function addReadRoute(scope: FastifyInstance, url: string, handler: RouteHandlerMethod): void {
  addOperations(scope, url, { GET: handler });
}
