import type { IncomingHttpHeaders } from 'node:http';
import type { Exchange } from '../../http/endpoint.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import type { Operation } from '../operations.ts';
import { Exposition } from '../prometheus/exposition.ts';
import { formatFor } from '../prometheus/format.ts';
import { NEGOTIATED_HEADERS } from '../replies.ts';

/** The prometheus endpoint: every meter as Prometheus scrapes it; `includedNames` picks some of them. */
export function prometheusEndpoint(metrics: Metrics): ManagementEndpoint {
  return {
    id: 'prometheus',
    about: 'All measurements, for Prometheus to scrape.',
    routes(scope) {
      const exposition = new Exposition(metrics, (meter) =>
        scope.log.warn({ meter }, 'meter not exposed to Prometheus: name taken by another one'),
      );
      const head = ({ accept }: IncomingHttpHeaders) => {
        const { mediaType, version } = formatFor(accept);
        // Prometheus 3 refuses a scrape without a content type that it knows.
        return { type: `${mediaType}; version=${version}; charset=utf-8`, headers: NEGOTIATED_HEADERS };
      };
      const get: Operation = ({ headers, query }) => {
        const chunks = exposition.chunks(formatFor(headers.accept), includedNames(query));
        return { status: 200, ...head(headers), body: piecesOf(chunks) };
      };
      return { '/prometheus': { get, head } };
    },
  };
}

/** Each chunk is made when the reader has taken the one before. */
async function* piecesOf(chunks: Iterable<string>): AsyncGenerator<string> {
  yield* chunks;
}

/** Given several times, or once with commas; undefined when it is not given at all. */
function includedNames(query: Exchange['query']): ReadonlySet<string> | undefined {
  const { includedNames: given } = query as { readonly includedNames?: string | readonly string[] };
  if (given === undefined) return undefined;
  return new Set([given].flat().flatMap((names) => names.split(',')));
}
