import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import type { WebSocketLimits } from './limits.ts';

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
