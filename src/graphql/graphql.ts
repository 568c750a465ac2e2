import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { parseAccept } from '../http/accept.ts';
import { refuseCrossSiteWrites } from '../http/cross-site.ts';
import { sendProblem } from '../http/error-format.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { directGraphql } from './direct.ts';
import type { Refused } from './documents.ts';
import { EventStreams } from './event-stream.ts';
import { createFindOperation, isQuery } from './executor.ts';
import { openGraphiql } from './graphiql/graphiql.ts';
import { prefersHtml } from './graphiql/prefers-html.ts';
import { graphqlErrors } from './graphql-errors.ts';
import { maskErrors } from './mask-errors.ts';
import {
  EVENT_STREAM,
  needsEventStream,
  negotiateResultType,
  RESULT_TYPES,
  type ResultType,
} from './media-type.ts';
import type { Operation } from './operation.ts';
import { type GraphqlOptions, withDefaults } from './options.ts';
import { readGraphqlBodies } from './read-body.ts';
import { paramsFromBody, paramsFromUrl, type RequestParams } from './request-params.ts';
import { resultBody, resultStatus, resultTypeHeader } from './result.ts';

export type { GraphqlOptions } from './options.ts';

const ALLOW = 'GET, HEAD, POST, OPTIONS';

/** The GraphQL door (contract 4.1, GraphQL over HTTP) as a Fastify plugin. */
export const graphql: FastifyPluginCallback<GraphqlOptions> = (app, given, ready) => {
  const options = withDefaults(given);
  const { path, context } = options;
  const findOperation = createFindOperation(options);
  const graphiql = openGraphiql(path);
  const streams = new EventStreams();

  readGraphqlBodies(app, options.maxBodyBytes);
  app.addHook('onRequest', refuseCrossSiteWrites);
  app.addHook('preClose', (done) => {
    streams.end();
    done();
  });
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? notFound(request, reply) : sendProblem(graphqlErrors, error, request, reply),
  );
  app.setNotFoundHandler(notFound);
  app.register(graphiql.assets);

  app.get(path, (request, reply) => {
    const query = request.query as Readonly<Record<string, unknown>>;
    // The same URL is a page to a browser and an endpoint to a program.
    reply.header('vary', 'accept');
    // contract 4.1: the path in a browser serves the query tool
    if (query.query === undefined && prefersHtml(request.headers.accept)) {
      return reply.headers(graphiql.page.headers).send(graphiql.page.html);
    }
    return answer(request, reply, () => paramsFromUrl(query));
  });
  // A context is made from the framework's request.
  const direct = given.context === undefined ? directGraphql(findOperation, options.maxBodyBytes) : undefined;
  app.post(path, { config: { direct } }, (request, reply) =>
    answer(request, reply, () => paramsFromBody(request.body)),
  );
  app.options(path, (_request, reply) => reply.code(204).header('allow', ALLOW).send());
  ready();

  function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    read: () => RequestParams,
  ): MaybePromise<FastifyReply> {
    const { accept } = request.headers;
    const events = accept?.includes(EVENT_STREAM) === true && parseAccept(accept)(EVENT_STREAM).weight > 0;
    const type = negotiateResultType(accept);
    if (type === undefined && !events) {
      const types = Object.values(RESULT_TYPES).join(' or ');
      throw new HttpProblem(406, 'NOT_ACCEPTABLE', `This endpoint answers with ${types}`);
    }
    const params = read();
    const operation = findOperation(params);
    const subscription = !('errors' in operation) && operation.definition.operation === 'subscription';
    if (type === undefined || (subscription && events)) return stream(request, reply, params, operation);
    if (subscription) throw needsEventStream();
    if ('errors' in operation) return send(reply, type, operation);
    refuseWriteByGet(request, operation);
    return whenReady(operation.run(params.variables, context(request)), (result) =>
      send(reply, type, masked(request, result)),
    );
  }

  async function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    params: RequestParams,
    operation: Operation | Refused,
  ): Promise<FastifyReply> {
    if (!('errors' in operation)) refuseWriteByGet(request, operation);
    // A stream has no end of its own, and HEAD waits for nothing else.
    if (request.method === 'HEAD') return reply.type(EVENT_STREAM).send();
    await streams.send(reply, await eventsOf(operation, params, context(request)), (result) =>
      resultBody(masked(request, result)),
    );
    return reply;
  }

  function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const known = request.url.slice(app.prefix.length).split('?', 1)[0] === path;
    const status = known ? 405 : 404;
    const headers = known ? { allow: ALLOW } : {};
    const problem = new HttpProblem(status, 'NO_ROUTE', reasonPhrase(status), { headers });
    return sendProblem(graphqlErrors, problem, request, reply);
  }
};

/** A GET may be repeated, cached and prefetched, so it runs queries only (GraphQL over HTTP, "GET"). */
function refuseWriteByGet({ method }: FastifyRequest, operation: Operation): void {
  if (method === 'POST' || isQuery(operation) || operation.definition.operation === 'subscription') return;
  throw new HttpProblem(405, 'MUTATION_BY_GET', 'A mutation needs POST', { headers: { allow: 'POST' } });
}

/** The results of any operation as a stream: many of a subscription, one of all else. */
async function eventsOf(
  operation: Operation | Refused,
  { variables }: RequestParams,
  context: unknown,
): Promise<AsyncIterable<ExecutionResult>> {
  if ('errors' in operation) return once(operation);
  if (operation.definition.operation !== 'subscription') return once(await operation.run(variables, context));
  const source = await operation.subscribe(variables, context);
  return Symbol.asyncIterator in source ? source : once(source);
}

async function* once(result: ExecutionResult): AsyncGenerator<ExecutionResult> {
  yield result;
}

function masked(request: FastifyRequest, result: ExecutionResult): ExecutionResult {
  return maskErrors(result, (error) =>
    request.log.error({ reqId: request.id, err: error }, 'resolver failed'),
  );
}

function send(reply: FastifyReply, type: ResultType, result: ExecutionResult): FastifyReply {
  return reply.code(resultStatus(result, type)).type(resultTypeHeader(type)).send(resultBody(result));
}
