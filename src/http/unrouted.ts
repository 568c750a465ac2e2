import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { CorsPolicy } from './access/cors.ts';
import { type ErrorFormat, sendProblem } from './error-format.ts';
import { HttpProblem, reasonPhrase } from './problem.ts';
import { addFields } from './send-reply.ts';

type Refuse = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/**
 * Makes what answers requests that no route of a scope takes: 405 with Allow for the paths of `methods`, which are
 * relative to the scope's prefix, else 404.
 */
export function unroutedHandler(
  { prefix }: Pick<FastifyInstance, 'prefix'>,
  errors: ErrorFormat,
  methods: Readonly<Record<string, string>> = {},
): Refuse {
  return (request, reply) => {
    const path = request.url.slice(prefix.length).split('?', 1)[0] ?? '';
    const allow = Object.hasOwn(methods, path) ? methods[path] : undefined;
    const status = allow === undefined ? 404 : 405;
    const headers = allow === undefined ? {} : { allow };
    const problem = new HttpProblem(status, 'NO_ROUTE', reasonPhrase(status), { headers });
    return sendProblem(errors, problem, request, reply);
  };
}

/**
 * Answers so what no route of a scope takes, and writes the refusals of its routes in the same format. Pages that may use
 * the door may read that nothing is there.
 */
export function refuseUnrouted(
  app: FastifyInstance,
  errors: ErrorFormat,
  methods: Readonly<Record<string, string>> = {},
  cors?: CorsPolicy,
): void {
  const answer = unroutedHandler(app, errors, methods);
  const refuse: Refuse = (request, reply) => {
    if (cors !== undefined) addFields(reply, cors.fieldsFor(request.headers.origin));
    return answer(request, reply);
  };
  app.setNotFoundHandler(refuse);
  // Fastify refuses some paths that no route takes before it asks that handler.
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? refuse(request, reply) : sendProblem(errors, error, request, reply),
  );
}
