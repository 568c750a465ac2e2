import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { isStreamed } from '../body/streamed-body.ts';
import type { Connection } from '../connections/connection.ts';
import type { Connections } from '../connections/connections.ts';
import type { ErrorFormat } from '../error-format.ts';
import { frameworkCode, HttpProblem, type ProblemCode, reasonPhrase } from '../problem.ts';

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

type ClientError = Error & { readonly code?: string };

/**
 * Answers bytes that never became a request, in the door's own error format, and closes the connection. Replies to
 * whole requests that came before those bytes come first, and one that was made before its request was whole.
 */
export function clientErrorHandler(
  format: ErrorFormat,
  connections: Pick<Connections, 'of'>,
  log: Pick<FastifyBaseLogger, 'debug'>,
): (error: ClientError, socket: Socket) => void {
  const waiting = new WeakSet<Socket>();
  return function handle(error, socket) {
    const connection = connections.of(socket);
    // Nobody can be told anything before the end of a TLS handshake, and an end of the connection would wait for it.
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    if (connection.leased !== undefined) {
      connection.whenFree(() => handle(error, socket));
      return;
    }
    const { reply } = connection;
    // Node tells once; a client on whose connection nothing moves is cut all the same.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && reply !== undefined && isStreamed(reply.req)) return;
    const isWhole = reply !== undefined && (reply.req.complete || reply.writableEnded);
    if (isWhole && socket.writable && error.code !== 'ECONNRESET') {
      // What comes behind such bytes is none either.
      if (waiting.has(socket)) return;
      waiting.add(socket);
      reply.once('close', () => {
        waiting.delete(socket);
        handle(error, socket);
      });
      return;
    }
    // Bytes in the middle of a reply would pass for its body.
    if (error.code === 'ECONNRESET' || !socket.writable || reply?.headersSent) socket.destroy();
    else {
      const status = STATUS_BY_CODE[error.code ?? ''] ?? 400;
      const code = frameworkCode(error.code) ?? 'BAD_REQUEST';
      log.debug({ status, code, reason: error.message }, 'request refused');
      writeRefusal(socket, format, status, code);
    }
  };
}

/**
 * Refuses a CONNECT, which Node takes off HTTP: it would close the connection before the replies to the requests in
 * front of it.
 */
export function refuseConnect(format: ErrorFormat, connection: Connection): void {
  const { socket } = connection;
  // Node no longer listens.
  socket.on('error', () => {});
  connection.whenAnswered(() => {
    if (socket.writable) writeRefusal(socket, format, 405, 'NO_ROUTE');
  });
}

function writeRefusal(socket: Socket, format: ErrorFormat, status: number, code: ProblemCode): void {
  const phrase = reasonPhrase(status);
  const body = format.body(new HttpProblem(status, code, phrase), undefined);
  socket.end(
    `HTTP/1.1 ${status} ${phrase}\r\nx-error-code: ${code}\r\nContent-Type: ${format.contentType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  // A client that never closes its half would otherwise hold the socket.
  socket.destroySoon();
}
