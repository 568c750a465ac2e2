import type { Socket } from 'node:net';
import type { ErrorFormat } from './error-format.ts';
import { HttpProblem, reasonPhrase } from './problem.ts';
import { replyInProgress } from './reply-in-progress.ts';

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

/** Answers bytes that never became a request, in the door's own error format, and closes the connection. */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  format: ErrorFormat,
): void {
  // Bytes in the middle of a reply would pass for its body, and behind a whole request for its reply.
  const reply = replyInProgress(socket);
  const replying = reply !== undefined && (reply.headersSent || reply.req.complete);
  if (error.code === 'ECONNRESET' || !socket.writable || replying) {
    socket.destroy();
    return;
  }
  const status = STATUS_BY_CODE[error.code ?? ''] ?? 400;
  const phrase = reasonPhrase(status);
  const body = format.body(new HttpProblem(status, error.code ?? 'BAD_REQUEST', phrase), undefined);
  socket.end(
    `HTTP/1.1 ${status} ${phrase}\r\nContent-Type: ${format.contentType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  // A client that never closes its half would otherwise hold the socket.
  socket.destroySoon();
}
