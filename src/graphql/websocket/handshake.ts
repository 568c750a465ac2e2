import type { FastifyRequest } from 'fastify';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, handleProtocols } from 'graphql-ws';
import type { CorsPolicy } from '../../http/access/cors.ts';
import { refuseFromOtherSite } from '../../http/cross-site.ts';
import { HttpProblem } from '../../http/problem.ts';

const VERSION = '13';
const KEY = /^[+/0-9A-Za-z]{22}==$/;

/** Judges a request for a WebSocket. Throws HttpProblem. */
export function judgeHandshake(request: FastifyRequest, cors: CorsPolicy | undefined): void {
  refuseFromOtherSite('WebSockets', request, cors);
  const { headers } = request;
  if (headers['sec-websocket-version'] !== VERSION) {
    throw new HttpProblem(400, 'WEBSOCKET_HANDSHAKE', `The WebSocket must be of version ${VERSION}`, {
      headers: { 'sec-websocket-version': VERSION },
    });
  }
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) {
    throw new HttpProblem(400, 'WEBSOCKET_HANDSHAKE', 'The header Sec-WebSocket-Key is missing or wrong');
  }
  // That of subscriptions-transport-ws, "graphql-ws", is another one.
  if (handleProtocols(headers['sec-websocket-protocol'] ?? '') === false) {
    const message = `The WebSocket needs the sub-protocol ${GRAPHQL_TRANSPORT_WS_PROTOCOL}`;
    throw new HttpProblem(400, 'WEBSOCKET_PROTOCOL', message);
  }
}
