import { Socket } from 'node:net';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { FastifyExchange } from '../../http/fastify-exchange.ts';
import { COMMON_HEADERS } from '../replies.ts';

/** Type and headers of a reply that is saved as a file. Its name holds the time, so that two can be compared. */
export function fileHead(extension: string): Pick<Reply, 'type' | 'headers'> {
  const time = new Date().toISOString().replaceAll(':', '-').replace(/\..*/, '');
  const disposition = `attachment; filename="portico-${process.pid}-${time}.${extension}"`;
  return {
    type: 'application/octet-stream',
    headers: { ...COMMON_HEADERS, 'content-disposition': disposition },
  };
}

/** A reply that is saved as a file and closes its connection. */
export function fileReply(extension: string, body: Reply['body']): Reply {
  const { type, headers } = fileHead(extension);
  return { status: 200, type, body, headers: { ...headers, connection: 'close' } };
}

/**
 * Lets a request wait while nothing moves on its connection, which would otherwise be cut; the reply has to close it.
 * Only for requests that Fastify brought.
 */
export function neverIdle(exchange: Exchange): void {
  const { socket } = (exchange as FastifyExchange).request.raw;
  // An injected request has no real socket.
  if (socket instanceof Socket) socket.setTimeout(0);
}
