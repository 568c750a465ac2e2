import { HttpProblem, KEEP_ALIVE, LIMITS, requestFields, toProblem } from '@portico/transport';
import type { FastifyRequest } from 'fastify';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, handleProtocols } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { CorsPolicy } from '../access/cors.ts';
import type { AccessPolicy } from '../access/policy.ts';
import { refuseFromOtherSite } from '../http/cross-site.ts';
import type { GraphqlSocket } from './graphql-socket.ts';

/** A service that cannot tell now may be able to soon (RFC 6455 7.4.1, "Try Again Later"). */
const TRY_AGAIN = 1013;

/**
 * Judges the credentials of a WebSocket: those of the payload of `connection_init`, or else of the request that opened it.
 * Resolves to false for one that is to be refused.
 */
export async function authorizeSocket(
  policy: AccessPolicy,
  socket: Pick<GraphqlSocket, 'ctx' | 'close'>,
  params: Readonly<Record<string, unknown>> | undefined,
): Promise<boolean> {
  const { ctx } = socket;
  try {
    await policy.authenticateLate(ctx, authorizationOf(params));
    return true;
  } catch (error) {
    policy.noteRefusal(ctx, error);
    const { status, code } = toProblem(error);
    ctx.log.debug({ ...requestFields(ctx), status, code }, 'WebSocket refused');
    if (status >= 500) socket.close(TRY_AGAIN, 'Try again later');
    return false;
  }
}

/**
 * The entry `Authorization` of the payload, in any case; browsers can send no header with a WebSocket. Throws HttpProblem
 * for two, as for two header fields.
 */
function authorizationOf(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const entries = Object.entries(params ?? {}).filter(([name]) => name.toLowerCase() === 'authorization');
  if (entries.length > 1) {
    throw new HttpProblem(400, 'DUPLICATE_FIELD', 'connection_init has more than one Authorization');
  }
  const [[, value] = []] = entries;
  return typeof value === 'string' ? value : undefined;
}

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

/** Pings clients, and cuts those of which nothing comes until the next ping is due. */
export class Heartbeat {
  /** Bytes that had come of a client when it was pinged last; undefined where a ping would wait behind other data. */
  readonly #clients = new Map<WebSocket, { readonly socket: CountedSocket; pingedAt: number | undefined }>();
  #timer: NodeJS.Timeout | undefined;

  add(client: WebSocket, socket: CountedSocket): void {
    this.#clients.set(client, { socket, pingedAt: undefined });
    // Notices when nothing of what waits for the client is taken any more.
    socket.setTimeout(LIMITS.idleReplyTimeout, () => client.terminate());
    this.#timer ??= setInterval(() => this.#beat(), KEEP_ALIVE).unref();
  }

  delete(client: WebSocket): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #beat(): void {
    for (const [client, state] of this.#clients) {
      const { bytesRead } = state.socket;
      if (client.bufferedAmount > 0) state.pingedAt = undefined;
      else if (state.pingedAt === bytesRead) client.terminate();
      else {
        state.pingedAt = bytesRead;
        client.ping();
      }
    }
  }
}

/** What is needed of a connection. */
interface CountedSocket {
  readonly bytesRead: number;
  setTimeout(milliseconds: number, listener: () => void): unknown;
}
