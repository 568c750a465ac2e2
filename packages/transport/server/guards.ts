import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { isStreamed } from '../body/request-message.ts';
import type { ErrorFormat } from '../error-format.ts';
import { frameworkCode, HttpProblem, type ProblemCode, reasonPhrase } from '../problem.ts';
import type { Connection, Connections } from './connections.ts';
import { LIMITS } from './limits.ts';

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

/**
 * Fields of one value by which a request is judged. Node takes the first of two or joins them, a proxy in front may take
 * the last: whoever sends two could have each program read another one (RFC 9110 5.3). Fields that are lists are not
 * here, nor those in which two values joined are one that nobody accepts. Each has a bit of its own.
 */
const ONCE: ReadonlyMap<string, number> = new Map(
  [
    'host',
    'authorization',
    'content-type',
    'if-modified-since',
    'if-unmodified-since',
    'last-event-id',
    'origin',
    'sec-fetch-site',
  ].map((name, i) => [name, 1 << i]),
);

/**
 * What Node's parser lets through and two programs in a row could read differently (RFC 9112 3.2 and 6.1), and
 * expectations that nobody can meet (RFC 9110 10.1.1). Returns why the request is refused, or undefined.
 */
export function refusedFraming(request: IncomingMessage): HttpProblem | undefined {
  const raw = request.rawHeaders;
  // Node drops what comes past its limit without a word, a token or a length among it.
  if (raw.length >= 2 * LIMITS.maxHeaders) {
    return new HttpProblem(431, 'TOO_MANY_HEADERS', `More than ${LIMITS.maxHeaders - 1} header fields`);
  }
  let seen = 0;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]?.toLowerCase() ?? '';
    const bit = ONCE.get(name) ?? 0;
    if ((seen & bit) !== 0) return duplicate(name);
    seen |= bit;
  }
  if (request.headers.host === undefined && request.httpVersionMinor > 0) {
    return new HttpProblem(400, 'MISSING_HOST', 'The Host header is missing');
  }
  if (request.httpVersionMinor === 0 && request.headers['transfer-encoding'] !== undefined) {
    return new HttpProblem(400, 'TRANSFER_ENCODING_1_0', 'HTTP/1.0 has no Transfer-Encoding');
  }
  const { expect } = request.headers;
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    return new HttpProblem(417, 'UNKNOWN_EXPECTATION', reasonPhrase(417));
  }
  return undefined;
}

function duplicate(name: string): HttpProblem {
  if (name === 'host') return new HttpProblem(400, 'DUPLICATE_HOST', 'More than one Host header');
  return new HttpProblem(400, 'DUPLICATE_FIELD', `More than one header field ${name}; send one`);
}

/** The origin form of a request target; a server must accept the absolute form too (RFC 9112 3.2.2). */
export function originForm(target: string): string {
  if (target.charCodeAt(0) === 0x2f) return target;
  // The authority ends at the first "/" or "?" (RFC 3986 3.2).
  const authority = /^https?:\/\/[^/?]*/i.exec(target)?.[0];
  if (authority === undefined) return target;
  const rest = target.slice(authority.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
