import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { hostNameOf, type Trust, trustAddresses } from '../../../src/core/addresses.ts';
import { isStreamed } from '../body/request-body.ts';
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
 * Answers bytes that are not a valid request, in the door's error format, and closes the connection. It first
 * lets replies to earlier complete requests finish, and a reply that was written before its own request was
 * complete.
 */
export function clientErrorHandler(
  format: ErrorFormat,
  connections: Pick<Connections, 'of'>,
  log: Pick<FastifyBaseLogger, 'debug'>,
): (error: ClientError, socket: Socket) => void {
  const waiting = new WeakSet<Socket>();
  return function handle(error, socket) {
    const connection = connections.of(socket);
    // No reply is possible before the TLS handshake ends, and a graceful close would wait for it.
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    if (connection.leased !== undefined) {
      connection.whenFree(() => handle(error, socket));
      return;
    }
    const { reply } = connection;
    // Node reports a timeout once per request; an inactive connection is closed anyway.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && reply !== undefined && isStreamed(reply.req)) return;
    const isWhole = reply !== undefined && (reply.req.complete || reply.writableEnded);
    if (isWhole && socket.writable && error.code !== 'ECONNRESET') {
      // The bytes that follow invalid ones are invalid as well.
      if (waiting.has(socket)) return;
      waiting.add(socket);
      reply.once('close', () => {
        waiting.delete(socket);
        handle(error, socket);
      });
      return;
    }
    // In the middle of a reply, an error response would be read as part of its body.
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
 * Refuses a CONNECT after the replies to earlier requests. Node detaches the socket from HTTP and would close
 * it before those replies.
 */
export function refuseConnect(format: ErrorFormat, connection: Connection): void {
  const { socket } = connection;
  // Node no longer handles errors of the socket.
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
  // Otherwise a client that never closes its half would keep the socket open.
  socket.destroySoon();
}

/**
 * Single-valued headers that affect how a request is judged. If one is repeated, Node takes the first or
 * joins them while a proxy may take the last, so a client could make the two programs read different values
 * (RFC 9110 5.3). List-valued headers are not included, nor headers whose joined values are invalid anyway.
 * Each has its own bit.
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
 * Checks a request for framing that Node's parser accepts but another program might read differently (RFC
 * 9112 3.2 and 6.1), and for unsupported expectations (RFC 9110 10.1.1). Returns the refusal, or undefined.
 */
export function refusedFraming(request: IncomingMessage): HttpProblem | undefined {
  const raw = request.rawHeaders;
  // Beyond its limit Node silently drops headers, which could include a token or a length.
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

type Fields = Readonly<IncomingHttpHeaders>;

/**
 * Determines the client and the requested host from the connection and trusted proxies' headers, as Fastify
 * does.
 */
export interface Forwarding {
  /** Whether any proxy is trusted. */
  readonly trustsProxies: boolean;
  /** The client's address; empty if there is none. */
  client(remote: string | undefined, headers: Fields): string;
  /** The requested host; empty if there is none. */
  host(remote: string | undefined, headers: Fields): string;
  /** The scheme with which the client sent the request; `own` is that of the connection. */
  scheme(remote: string | undefined, headers: Fields, own: 'http' | 'https'): string;
}

/** Creates a Forwarding for Fastify's `trustProxy` option. */
export function forwarding(trustProxy: unknown): Forwarding {
  const trust = trustOf(trustProxy);
  if (trust === undefined) {
    return {
      trustsProxies: false,
      client: (remote = '') => remote,
      host: (_remote, { host = '' }) => host,
      scheme: (_remote, _headers, own) => own,
    };
  }
  return {
    trustsProxies: true,
    client(remote, headers) {
      const forwarded = field(headers, 'x-forwarded-for');
      if (forwarded === undefined) return remote ?? '';
      const hops = [
        remote,
        ...forwarded
          .split(',')
          .map((hop) => hop.trim())
          .filter(Boolean)
          .toReversed(),
      ];
      const client = hops.findIndex((address, hop) => !trust(address, hop));
      return hops.at(client) ?? '';
    },
    host(remote, headers) {
      const forwarded = field(headers, 'x-forwarded-host');
      return forwarded && trust(remote, 0) ? lastOf(forwarded) : (headers.host ?? '');
    },
    scheme(remote, headers, own) {
      const forwarded = field(headers, 'x-forwarded-proto');
      return forwarded && trust(remote, 0) ? lastOf(forwarded) : own;
    },
  };
}

/** The value that the nearest proxy has appended. */
function lastOf(list: string): string {
  return list.slice(list.lastIndexOf(',') + 1).trim();
}

/** A header's value; undefined if it is repeated, which the fast path never takes. */
function field(headers: Fields, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

function trustOf(trustProxy: unknown): Trust | undefined {
  if (typeof trustProxy === 'function') return trustProxy as Trust;
  return Array.isArray(trustProxy) ? trustAddresses(trustProxy) : undefined;
}

/** The refusal of a request for an unknown host. */
export function unknownHost(stranger: string): HttpProblem {
  const name = hostNameOf(stranger);
  const message =
    name === undefined
      ? 'The request names an invalid host'
      : `Unknown host ${name}; add it to HTTP_HOSTS to take requests for it`;
  return new HttpProblem(403, 'UNKNOWN_HOST', message);
}
