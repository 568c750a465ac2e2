import type { Endpoint } from '../endpoint.ts';
import { jsonBytes, replyJson } from '../json-reply.ts';
import { addOperations } from '../operations.ts';

const BYE = jsonBytes({ message: 'Shutting down, bye...' });

/** The shutdown endpoint: a POST stops the process as SIGTERM does, once its own answer is out. */
export function shutdownEndpoint(shutDown: () => void): Endpoint {
  return {
    id: 'shutdown',
    about: 'Stops this service in good order.',
    ownAccess: 'none',
    writeOnly: true,
    links: [{ name: 'shutdown', path: '/shutdown', templated: false }],
    addRoutes(scope) {
      addOperations(scope, '/shutdown', {
        POST(request, reply) {
          request.log.warn({ reqId: request.id }, 'shutting down on request');
          // Sent or not: who asked for it and went away meant it all the same.
          reply.raw.once('close', shutDown);
          return replyJson(reply.header('connection', 'close'), BYE);
        },
      });
    },
  };
}
