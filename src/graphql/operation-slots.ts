import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../core/error-codes.ts';

/** Limits of the WebSockets of a door. */
export interface WebSocketLimits {
  /** Maximum open WebSockets; 0 disables them. Default 5,000. */
  readonly maxWebSockets: number;
  /** Maximum operations in progress on all WebSockets, including subscriptions; default 20,000. */
  readonly maxSubscriptions: number;
  /** Maximum operations in progress on one WebSocket; default 100. */
  readonly maxPerWebSocket: number;
}

/** Maximum bytes of messages held by all operations in progress. */
const MAX_HELD = 64 * 1024 * 1024;

type SlotLimits = Pick<WebSocketLimits, 'maxSubscriptions' | 'maxPerWebSocket'>;

/** Counts the operations in progress on all WebSockets of a door. */
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

  /**
   * Takes a slot for an operation of a connection that already has `own` operations; returns the refusal if
   * there is none.
   */
  take(own: number, bytes: number): GraphQLError | undefined {
    const { maxSubscriptions, maxPerWebSocket } = this.#limits;
    if (own >= maxPerWebSocket) return exceeded('maxPerWebSocket', 'this connection');
    if (this.#taken >= maxSubscriptions) return exceeded('maxSubscriptions', 'all connections');
    if (this.#heldBytes + bytes > MAX_HELD)
      return refusal('BUSY', 'The operations in progress hold too many bytes');
    this.#taken++;
    this.#heldBytes += bytes;
    return undefined;
  }

  release(bytes: number): void {
    this.#taken--;
    this.#heldBytes -= bytes;
  }
}

/** The error for an operation that is refused. */
export function refusal(code: ErrorCode, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}

function exceeded(limit: keyof SlotLimits, where: string): GraphQLError {
  return new GraphQLError(`Too many operations are in progress on ${where} (${limit})`, {
    extensions: { code: 'LIMIT_EXCEEDED' satisfies ErrorCode, limit },
  });
}
