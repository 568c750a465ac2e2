import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { methodNotAllowed, NOT_FOUND, refuse } from './management-errors.ts';
import { answerBeforeBody } from './operations.ts';
import { ManagementOptionsError } from './options-error.ts';

const METHOD_NOT_ALLOWED = methodNotAllowed('GET, HEAD, OPTIONS');

/** Answers what is under the base path but no endpoint. */
export function answerUnknownPaths(scope: FastifyInstance, prefix: string): void {
  try {
    scope.setNotFoundHandler(answer);
  } catch (cause) {
    throw new ManagementOptionsError(
      'With the base path / every unknown path belongs to the management door, but the application answers them itself. Choose another base path.',
      { cause },
    );
  }
  // A catch-all route of the application, for its web pages say, would otherwise win over a not-found handler.
  if (prefix !== '') answerBeforeBody(scope, '/*', scope.supportedMethods, answer);
}

function answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // A method that Fastify has no routes for comes here even on a known path.
  const [path = ''] = request.url.split('?', 1);
  const known = !path.includes('*') && request.server.hasRoute({ method: 'GET', url: path });
  return refuse(known ? METHOD_NOT_ALLOWED : NOT_FOUND, request, reply);
}
