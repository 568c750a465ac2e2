import { Socket } from 'node:net';
import type { Exchange } from '../../http/endpoint.ts';
import type { FastifyExchange } from '../../http/fastify-exchange.ts';

/**
 * Lets a request wait while nothing moves on its connection, which would otherwise be cut; the reply has to close it.
 * Only for requests that Fastify brought.
 */
export function neverIdle(exchange: Exchange): void {
  const { socket } = (exchange as FastifyExchange).request.raw;
  // An injected request has no real socket.
  if (socket instanceof Socket) socket.setTimeout(0);
}
