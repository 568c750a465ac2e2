import type { FastifyReply, RouteHandlerMethod } from 'fastify';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import type { Endpoint } from '../endpoint.ts';
import { COMMON_HEADERS } from '../json-reply.ts';
import { addOperations } from '../operations.ts';
import { Exposition } from '../prometheus/exposition.ts';
import { type Format, formatFor } from '../prometheus/format.ts';
import { scrapeStream } from '../prometheus/scrape-stream.ts';

/** The prometheus endpoint: every meter as Prometheus scrapes it; `includedNames` picks some of them. */
export function prometheusEndpoint(metrics: Metrics): Endpoint {
  return {
    id: 'prometheus',
    about: 'All measurements, for Prometheus to scrape.',
    links: [{ name: 'prometheus', path: '/prometheus', templated: false }],
    addRoutes(scope) {
      const exposition = new Exposition(metrics, (meter) =>
        scope.log.warn({ meter }, 'meter left out for Prometheus: another one has its name there'),
      );
      const GET: RouteHandlerMethod = (request, reply) => {
        const format = formatFor(request.headers.accept);
        const included = includedNames(request.query);
        return withHeaders(reply, format).send(scrapeStream(exposition.chunks(format, included)));
      };
      const HEAD: RouteHandlerMethod = (request, reply) =>
        withHeaders(reply, formatFor(request.headers.accept)).send();
      addOperations(scope, '/prometheus', { GET, HEAD });
    },
  };
}

function withHeaders(reply: FastifyReply, { contentType }: Format): FastifyReply {
  return reply.headers(COMMON_HEADERS).header('content-type', contentType).header('vary', 'accept');
}

/** Given several times, or once with commas; undefined when it is not given at all. */
function includedNames(query: unknown): ReadonlySet<string> | undefined {
  const { includedNames: given } = query as { readonly includedNames?: string | readonly string[] };
  if (given === undefined) return undefined;
  return new Set([given].flat().flatMap((names) => names.split(',')));
}
