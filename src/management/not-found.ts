import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { METHOD_NOT_ALLOWED, NOT_FOUND, refuse } from './management-errors.ts';
import { ManagementOptionsError } from './options.ts';
import { ALLOWED } from './read-route.ts';

/** Answers what is under the base path but no endpoint, after the guard and before a body is read. */
export function answerUnknownPaths(scope: FastifyInstance, prefix: string): void {
  scope.addHook('onRequest', (request, reply, done) => {
    if (request.is404) answer(request, reply);
    else done();
  });
  try {
    scope.setNotFoundHandler(answer);
  } catch (cause) {
    throw new ManagementOptionsError(
      'With the base path / every unknown path belongs to the management door, but the application answers them itself. Choose another base path.',
      { cause },
    );
  }
  if (prefix === '') return;
  // A catch-all route of the application, for its web pages say, would otherwise win over a not-found handler.
  scope.route({
    method: scope.supportedMethods,
    url: '/*',
    config: { unlisted: true },
    exposeHeadRoute: false,
    onRequest(request, reply) {
      answer(request, reply);
    },
    handler: answer,
  });
}

function answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // A method that Fastify has no routes for comes here even on a known path.
  const [path = ''] = request.url.split('?', 1);
  const known = !path.includes('*') && request.server.hasRoute({ method: 'GET', url: path });
  if (!known) return refuse(NOT_FOUND, request, reply);
  return refuse(METHOD_NOT_ALLOWED, request, reply.header('allow', ALLOWED));
}
