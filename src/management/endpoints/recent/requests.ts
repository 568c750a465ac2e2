import type { RequestTail, TailedRequest } from '../../../observability/history/request-tail.ts';
import type { ManagementEndpoint } from '../../management-endpoint.ts';
import { jsonReply } from '../../replies.ts';

/** The requests endpoint: the last replies of all doors by route, which costs nothing while nobody looks. */
export function requestsEndpoint(tail: RequestTail): ManagementEndpoint {
  return {
    id: 'requests',
    about: 'The last 500 requests of all doors by route, with status and duration.',
    routes: () => ({
      '/requests': { get: (exchange) => jsonReply(exchange, { requests: tail.latest().map(describe) }) },
    }),
  };
}

function describe({ endedAt, duration, ...request }: TailedRequest) {
  return { ...request, endedAt: new Date(endedAt).toISOString(), durationMs: duration };
}
