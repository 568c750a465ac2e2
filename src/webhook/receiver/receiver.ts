import type { FastifyPluginCallback } from 'fastify';
import { ByteBudget, limitBytesInFlight } from '../../http/body/byte-budget.ts';
import { parseJsonBody } from '../../http/body/json-body.ts';
import { readRawBodies } from '../../http/body/read-bodies.ts';
import { sendProblem } from '../../http/error-format.ts';
import { HttpProblem, reasonPhrase } from '../../http/problem.ts';
import { DeliveryIds } from '../../inbox/delivery-ids.ts';
import type { Source } from '../sources/source.ts';
import { webhookErrors } from '../webhook-errors.ts';
import { acceptDelivery, bodyOf, contentTypeOf } from './accept-delivery.ts';
import { directReceiver } from './direct.ts';
import { readReceived } from './received.ts';
import { addSourceRoute, type SourceRouteOptions } from './source-route.ts';
import { tokenCheck, tokenGuard } from './token-guard.ts';

export interface ReceiverOptions extends Omit<SourceRouteOptions, 'ids'> {
  /** The shared secrets that are accepted in x-webhook-token; none: not secured. Asked at each request. */
  secrets(): readonly string[];
  /** Signed sources, each at /webhook/<name>; default none. */
  readonly sources?: readonly Source[];
  /** Largest body in bytes; default 1 MiB. A larger one is a 413. */
  readonly maxBodyBytes?: number;
  /** Bytes of all bodies in hand at the same time; default 64 MiB. What does not fit is a 503. */
  readonly maxBytesInFlight?: number;
}

/** Where deliveries come in. */
export const RECEIVER_PATH = '/webhook';

/** Receives deliveries and stores them (contract 4.4); registered with RECEIVER_PATH as its prefix. */
export const receiver: FastifyPluginCallback<ReceiverOptions> = (app, given, ready) => {
  const options = { ...given, ids: new DeliveryIds() };
  const { secrets, sources = [], maxBodyBytes = 1024 * 1024, maxBytesInFlight = 64 * 1024 * 1024 } = options;
  readRawBodies(app, { bodyLimit: maxBodyBytes });
  const budget = new ByteBudget(maxBytesInFlight);
  limitBytesInFlight(app, budget, maxBodyBytes);
  app.setErrorHandler((error, request, reply) => sendProblem(webhookErrors, error, request, reply));

  const isAllowed = tokenCheck(secrets);
  const config = { direct: directReceiver(options, isAllowed, budget, maxBodyBytes) };
  app.post('', { config, onRequest: tokenGuard(isAllowed) }, (request, reply) => {
    const body = bodyOf(request);
    const contentType = contentTypeOf(request);
    const received = readReceived(request.headers, contentType, body, parseJsonBody(body));
    return acceptDelivery(options, received, reply);
  });
  for (const source of sources) addSourceRoute(app, source, options);

  // Whoever builds the application answers for every other path of it.
  const paths = new Set(['', ...sources.map(({ name }) => `/${name}`)]);
  app.setNotFoundHandler((request, reply) => {
    const known = paths.has(request.url.slice(app.prefix.length).split('?', 1)[0] ?? '');
    const status = known ? 405 : 404;
    const headers = known ? { allow: 'POST' } : {};
    const problem = new HttpProblem(status, 'NO_ROUTE', reasonPhrase(status), { headers });
    return sendProblem(webhookErrors, problem, request, reply);
  });
  ready();
};
