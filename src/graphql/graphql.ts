import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import { refuseCrossSiteWrites } from '../http/cross-site.ts';
import { sendProblem } from '../http/error-format.ts';
import { parseJsonBody } from '../http/json-body.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { whenReady } from '../users/maybe-promise.ts';
import { graphqlErrors } from './error-format.ts';
import { openGraphiql } from './graphiql/graphiql.ts';
import { prefersHtml } from './graphiql/prefers-html.ts';
import { maskErrors } from './mask-errors.ts';
import { negotiateResultType, RESULT_TYPES, type ResultType } from './media-type.ts';
import { paramsFromBody, paramsFromUrl, type RequestParams } from './request-params.ts';
import { createRun } from './run.ts';

export interface GraphqlOptions {
  readonly schema: GraphQLSchema;
  /** Where the endpoint is; default /graphql. */
  readonly path?: string;
  /** Largest body in bytes; default 100 KiB. */
  readonly bodyLimit?: number;
}

const ALLOW = 'GET, HEAD, POST, OPTIONS';

/** The GraphQL door (contract 4.1, GraphQL over HTTP) as a Fastify plugin. */
export const graphql: FastifyPluginCallback<GraphqlOptions> = (app, options, ready) => {
  const { schema, path = '/graphql', bodyLimit = 100 * 1024 } = options;
  const run = createRun(schema);
  const graphiql = openGraphiql(path);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit }, (request, body, done) => {
    try {
      done(null, readBody(request, body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addHook('onRequest', refuseCrossSiteWrites);
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? notFound(request, reply) : sendProblem(graphqlErrors, error, request, reply),
  );
  app.setNotFoundHandler(notFound);
  app.register(graphiql.assets);

  app.get(path, (request, reply) => {
    const query = request.query as Readonly<Record<string, unknown>>;
    // contract 4.1: the path in a browser serves the query tool
    if (query.query === undefined && prefersHtml(request.headers.accept)) {
      return reply.headers(graphiql.page.headers).send(graphiql.page.html);
    }
    return answer(request, reply, () => paramsFromUrl(query), true);
  });
  app.post(path, (request, reply) => answer(request, reply, () => paramsFromBody(request.body), false));
  app.options(path, (_request, reply) => reply.code(204).header('allow', ALLOW).send());
  ready();

  function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    read: () => RequestParams,
    readOnly: boolean,
  ) {
    const type = negotiateResultType(request.headers.accept);
    if (type === undefined) {
      throw new HttpProblem(
        406,
        'NOT_ACCEPTABLE',
        `This endpoint answers with ${Object.values(RESULT_TYPES).join(' or ')}`,
      );
    }
    reply.type(`${type}; charset=utf-8`);
    return whenReady(run(read(), readOnly), (result) => send(request, reply, type, result));
  }

  function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const known = request.url.slice(app.prefix.length).split('?', 1)[0] === path;
    if (known) reply.header('allow', ALLOW);
    const status = known ? 405 : 404;
    return sendProblem(
      graphqlErrors,
      new HttpProblem(status, 'NO_ROUTE', reasonPhrase(status)),
      request,
      reply,
    );
  }
};

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  type: ResultType,
  result: ExecutionResult,
): FastifyReply {
  const masked = maskErrors(result, (error) =>
    request.log.error({ reqId: request.id, err: error }, 'resolver failed'),
  );
  // A request that did not run is a 400, but older clients read errors only from a 200.
  const status = 'data' in masked || type === RESULT_TYPES.legacy ? 200 : 400;
  return reply.code(status).send(JSON.stringify(masked));
}

function readBody(request: FastifyRequest, body: Buffer): unknown {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new HttpProblem(415, 'UNSUPPORTED_CHARSET', 'The body must be UTF-8');
  }
  return parseJsonBody(body);
}
