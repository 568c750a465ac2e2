import { requestFields } from '../../observability/trace/request-fields.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonReply } from '../replies.ts';

/** The shutdown endpoint: a POST stops the process as SIGTERM does, once its own reply is sent. */
export function shutdownEndpoint(shutDown: () => void): ManagementEndpoint {
  return {
    id: 'shutdown',
    about: 'Stops this service gracefully.',
    ownAccess: 'none',
    routes: () => ({
      '/shutdown': {
        post(exchange) {
          exchange.log.warn(requestFields(exchange), 'shutdown requested');
          // A client that is gone before its reply wanted the stop too.
          exchange.onClose(shutDown);
          const reply = jsonReply(exchange, { message: 'Shutting down, bye...' });
          return { ...reply, headers: { ...reply.headers, connection: 'close' } };
        },
      },
    }),
  };
}
