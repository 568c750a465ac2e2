/**
 * Where a delivery stands:
 * `pending` waits for its handler, `processing` is with it, `done` succeeded, `failed` did not,
 * `unhandled` had no handler when it came and waits for a replay.
 */
export type DeliveryStatus = 'pending' | 'processing' | 'done' | 'failed' | 'unhandled';

/** A webhook delivery as its handler gets it. */
export interface Delivery {
  /** Stable and globally unique (UUID version 7): a handler can make its own effects idempotent with it. */
  readonly id: string;
  /** The `event` field of the body (contract 2.5). */
  readonly event: string;
  /** The `data` field of the body, not validated (contract 2.5). */
  readonly data: unknown;
  readonly receivedAt: Date;
}

/** A delivery that is about to be stored. */
export interface NewDelivery {
  readonly id: string;
  /** The `event` field when it is a string, else null. */
  readonly event: string | null;
  /** The request body, byte for byte. */
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  readonly status: 'pending' | 'unhandled';
}

/** A stored delivery that was claimed to be handled. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly event: string;
  readonly body: Uint8Array;
  readonly receivedAt: number;
}
