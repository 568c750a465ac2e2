import { HttpProblem, LIMITS, type RequestContext, toProblem } from '@portico/transport';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, handleProtocols } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { CorsPolicy } from '../access/cors.ts';
import { refuseFromOtherSite } from '../access/cors.ts';
import type { AccessPolicy } from '../access/policy.ts';
import { requestFields } from '../core/trace.ts';
import type { GraphqlSocket } from './graphql-socket.ts';

/** Close code for a temporary failure (RFC 6455 7.4.1, "Try Again Later"). */
const TRY_AGAIN = 1013;

/**
 * Checks the credentials of a WebSocket: those in the payload of `connection_init`, otherwise those of the
 * request that opened it. Rules also let in clients without any. Resolves to false if the WebSocket is refused.
 */
export async function authorizeSocket(
  policy: AccessPolicy,
  socket: Pick<GraphqlSocket, 'ctx' | 'close'>,
  params: Readonly<Record<string, unknown>> | undefined,
  isRuled: boolean,
): Promise<boolean> {
  const { ctx } = socket;
  try {
    await policy.authenticateLate(ctx, authorizationOf(params), isRuled);
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
 * The payload's `Authorization` entry, in any case: browsers cannot send headers with a WebSocket. Throws
 * HttpProblem if there are two, as for repeated headers.
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

/** Checks the request that opens a WebSocket. Throws HttpProblem. */
export function judgeHandshake(ctx: RequestContext, cors: CorsPolicy | undefined): void {
  refuseFromOtherSite('WebSockets', ctx, cors);
  const { headers } = ctx;
  if (headers['sec-websocket-version'] !== VERSION) {
    throw new HttpProblem(400, 'WEBSOCKET_HANDSHAKE', `The WebSocket protocol must be version ${VERSION}`, {
      headers: { 'sec-websocket-version': VERSION },
    });
  }
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) {
    throw new HttpProblem(400, 'WEBSOCKET_HANDSHAKE', 'The header Sec-WebSocket-Key is missing or invalid');
  }
  // "graphql-ws" is the sub-protocol of subscriptions-transport-ws, not this one.
  if (handleProtocols(headers['sec-websocket-protocol'] ?? '') === false) {
    const message = `The WebSocket needs the sub-protocol ${GRAPHQL_TRANSPORT_WS_PROTOCOL}`;
    throw new HttpProblem(400, 'WEBSOCKET_PROTOCOL', message);
  }
}

/** Pings clients, and closes the connections of those that send nothing until the next ping. */
export class Heartbeat {
  /**
   * The bytes received from a client when it was last pinged; undefined if a ping would wait behind other
   * data.
   */
  readonly #clients = new Map<WebSocket, { readonly socket: CountedSocket; pingedAt: number | undefined }>();
  #timer: NodeJS.Timeout | undefined;

  add(client: WebSocket, socket: CountedSocket): void {
    this.#clients.set(client, { socket, pingedAt: undefined });
    // Detects a client that no longer reads.
    socket.setTimeout(LIMITS.idleReplyTimeout, () => client.terminate());
    this.#timer ??= setInterval(() => this.#beat(), LIMITS.signOfLife).unref();
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

/** The part of a socket that the heartbeat uses. */
interface CountedSocket {
  readonly bytesRead: number;
  setTimeout(milliseconds: number, listener: () => void): unknown;
}
