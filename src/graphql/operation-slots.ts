import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../core/error-codes.ts';

/** What the WebSockets of a door may be and do at the same time. */
export interface WebSocketLimits {
  /** Maximum WebSockets; 0 for a door without. Default 5,000. */
  readonly maxWebSockets: number;
  /** Maximum operations in progress over all WebSockets, subscriptions among them; default 20,000. */
  readonly maxSubscriptions: number;
  /** Maximum operations in progress on one WebSocket; default 100. */
  readonly maxPerWebSocket: number;
}

/** The limits where an option sets none. */
export const DEFAULT_WEB_SOCKET_LIMITS: WebSocketLimits = {
  maxWebSockets: 5_000,
  maxSubscriptions: 20_000,
  maxPerWebSocket: 100,
};

/** Bytes of their messages that all operations in progress may hold. */
const MAX_HELD = 64 * 1024 * 1024;

type SlotLimits = Pick<WebSocketLimits, 'maxSubscriptions' | 'maxPerWebSocket'>;

/** Counts the operations in progress over all WebSockets of a door. */
export class OperationSlots {
  readonly #limits: SlotLimits;
  #taken = 0;
  #heldBytes = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a slot for an operation of a connection that has `own` of them; says why there is none. */
  take(own: number, bytes: number): GraphQLError | undefined {
    const { maxSubscriptions, maxPerWebSocket } = this.#limits;
    if (own >= maxPerWebSocket) return exceeded('maxPerWebSocket', 'this connection');
    if (this.#taken >= maxSubscriptions) return exceeded('maxSubscriptions', 'all connections');
    if (this.#heldBytes + bytes > MAX_HELD)
      return refusal('BUSY', 'Too many bytes of operations are in progress');
    this.#taken++;
    this.#heldBytes += bytes;
    return undefined;
  }

  release(bytes: number): void {
    this.#taken--;
    this.#heldBytes -= bytes;
  }
}

/** An error that a client gets for an operation that does not begin. */
export function refusal(code: ErrorCode, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}

function exceeded(limit: keyof SlotLimits, where: string): GraphQLError {
  return new GraphQLError(`Too many operations are in progress on ${where} (${limit})`, {
    extensions: { code: 'LIMIT_EXCEEDED' satisfies ErrorCode, limit },
  });
}
