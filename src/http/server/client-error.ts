import type { Socket } from 'node:net';
import type { ErrorFormat } from '../error-format.ts';
import { replyInProgress } from '../fast-path/node-internals.ts';
import { frameworkCode, HttpProblem, reasonPhrase } from '../problem.ts';

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

type ClientError = Error & { readonly code?: string };

/**
 * Answers bytes that never became a request, in the door's own error format, and closes the connection. Replies to
 * whole requests that came before those bytes come first.
 */
export function clientErrorHandler(format: ErrorFormat): (error: ClientError, socket: Socket) => void {
  const waiting = new WeakSet<Socket>();
  return function handle(error, socket) {
    const reply = replyInProgress(socket);
    if (reply?.req.complete && socket.writable && error.code !== 'ECONNRESET') {
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
    else refuse(error, socket, format);
  };
}

function refuse(error: ClientError, socket: Socket, format: ErrorFormat): void {
  const status = STATUS_BY_CODE[error.code ?? ''] ?? 400;
  const phrase = reasonPhrase(status);
  const code = frameworkCode(error.code) ?? 'BAD_REQUEST';
  const body = format.body(new HttpProblem(status, code, phrase), undefined);
  socket.end(
    `HTTP/1.1 ${status} ${phrase}\r\nContent-Type: ${format.contentType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  // A client that never closes its half would otherwise hold the socket.
  socket.destroySoon();
}
