import { prefersHtml } from '../http/accept.ts';
import { guarded } from '../http/access/guarded.ts';
import { refuseCrossSite } from '../http/cross-site.ts';
import type { Endpoint, Reply } from '../http/endpoint.ts';
import type { FastifyExchange } from '../http/fastify-exchange.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { offeredUpgrade } from '../http/server/upgrades.ts';
import { RESULT_TYPES } from './media-type.ts';
import { type RunOptions, runRequest } from './run-request.ts';

/** Operations by POST; the body is JSON in UTF-8 and at most `bodyLimit` bytes long. */
export function postEndpoint(options: RunOptions, bodyLimit: number): Endpoint {
  const endpoint: Endpoint = {
    bodyLimit,
    admit(exchange, bodyLength) {
      refuseCrossSite(exchange, options.cors);
      if (bodyLength > 0 || exchange.contentType !== null) refuseOtherTypes(exchange.contentType ?? '');
    },
    handle: (exchange) => runRequest(exchange, options),
  };
  return guarded(endpoint, options, (gate, exchange) => gate.admitAny(exchange));
}

/**
 * Queries by GET. The same URL is a page to a browser and an endpoint to a program: a link with a query fills the page,
 * which runs nothing by itself.
 */
export function getEndpoint(options: RunOptions, page: Reply): Endpoint {
  const resultTypes = Object.values(RESULT_TYPES);
  const endpoint: Endpoint = {
    bodyLimit: 0,
    handle(exchange) {
      // contract 4.1: the path in a browser serves the query tool
      if (prefersHtml(exchange.headers.accept, resultTypes)) return page;
      return runRequest(exchange, options);
    },
  };
  return guarded(endpoint, options, (gate, exchange) => {
    // The page shows nothing of the service, and a browser asks for it without credentials.
    if (prefersHtml(exchange.headers.accept, resultTypes)) return;
    const opensSocket = offeredUpgrade((exchange as FastifyExchange).request.raw) !== undefined;
    return opensSocket ? gate.admitEarly(exchange) : gate.admitAny(exchange);
  });
}

/** A form of another site can send no JSON (GraphQL over HTTP, "POST"): 415. */
function refuseOtherTypes(contentType: string): void {
  const [type = '', ...parameters] = contentType.split(';');
  if (type.trim().toLowerCase() !== 'application/json') {
    throw new HttpProblem(415, 'UNSUPPORTED_MEDIA_TYPE', reasonPhrase(415));
  }
  const charset = /^\s*charset\s*=\s*"?([^\s"]+)/i;
  const given = parameters
    .map((parameter) => charset.exec(parameter)?.[1])
    .find((name) => name !== undefined);
  if (given !== undefined && !/^utf-?8$/i.test(given)) {
    throw new HttpProblem(415, 'UNSUPPORTED_CHARSET', 'The body must be UTF-8');
  }
}
