import type { FastifyPluginAsync } from 'fastify';
import { pluginGate } from '../config/api/plugin-gate.ts';
import { corsPolicy } from '../http/access/cors.ts';
import { addPreflights } from '../http/access/preflights.ts';
import { addEndpoint } from '../http/add-endpoint.ts';
import { readRawBodies } from '../http/body/request-body.ts';
import { EventStreams } from '../http/event-stream/event-streams.ts';
import type { FastifyExchange } from '../http/fastify-exchange.ts';
import { replyBudgetOf } from '../http/reply/reply-pieces.ts';
import { addFields } from '../http/send-reply.ts';
import { refuseUnrouted } from '../http/unrouted.ts';
import { contextWithCaller } from './access.ts';
import { createFindOperation } from './executor.ts';
import { openGraphiql } from './graphiql/graphiql.ts';
import { graphqlErrors } from './graphql-errors.ts';
import { getEndpoint, postEndpoint } from './operation-endpoints.ts';
import { type GraphqlOptions, withDefaults } from './options.ts';
import { RequestLifetime } from './request-lifetime.ts';
import type { RunOptions } from './run-request.ts';
import { streamRequests } from './stream-requests.ts';
import { openWebSockets } from './websocket/open-web-sockets.ts';

export type { ContextDetails } from '../config/schema/graphql-code.ts';
export type { GraphqlOptions } from './options.ts';

const ALLOW = 'GET, HEAD, POST, OPTIONS';

/** The GraphQL door (contract 4.1, GraphQL over HTTP) as a Fastify plugin. */
export const graphql: FastifyPluginAsync<GraphqlOptions> = async (app, given) => {
  const options = withDefaults(given);
  const { path, context, contextValue, maxBodyBytes, maxBatch } = options;
  const gate = await pluginGate(app, options.api);
  const cors = corsPolicy(options.cors);
  const graphiql = openGraphiql(path);
  const budget = replyBudgetOf(app);
  const streams = new EventStreams(budget);
  const run: RunOptions = {
    findOperation: createFindOperation(options),
    maxBatch,
    gate,
    cors,
    // A context is made from Fastify's own request, so the fast path leaves such a door alone.
    contextOf:
      context === undefined
        ? contextWithCaller(contextValue, gate)
        : (exchange, { recipient = exchange, connectionParams } = {}) =>
            context(
              (exchange as FastifyExchange).request,
              new RequestLifetime(recipient, connectionParams, exchange.caller),
            ),
  };

  readRawBodies(app);
  refuseUnrouted(app, graphqlErrors, { [path]: ALLOW }, cors);
  const sockets = openWebSockets(app, options, run, budget);
  app.addHook('preClose', (done) => {
    streams.end();
    sockets?.end();
    done();
  });
  app.register(graphiql.assets);
  const stream = streamRequests(streams, run);
  addEndpoint(app, 'GET', path, getEndpoint(run, graphiql.page), {
    fast: false,
    streams(request, reply, done) {
      if (sockets?.accept(request, reply)) return;
      addFields(reply, { vary: 'accept' });
      stream.call(app, request, reply, done);
    },
  });
  addEndpoint(app, 'POST', path, postEndpoint(run, maxBodyBytes), {
    fast: context === undefined,
    streams: stream,
  });
  addPreflights(app, cors, (scope) => {
    scope.options(path, (_request, reply) => reply.code(204).header('allow', ALLOW).send());
  });
};
