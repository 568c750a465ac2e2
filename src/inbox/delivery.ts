/** A webhook delivery as its handler gets it. */
export interface Delivery {
  /** Stable and globally unique (UUID version 7): a handler can make its own effects idempotent with it. */
  readonly id: string;
  /** The name of the signed source it came from; empty for /webhook itself. */
  readonly source: string;
  /** The kind of event (contract 2.5). */
  readonly event: string;
  /** The event's own payload, not validated (contract 2.5). */
  readonly data: unknown;
  readonly receivedAt: Date;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** Something to be done with a delivery. */
export interface NewJob {
  /** The name of the handler or forward address. */
  readonly target: string;
  /** Jobs of one target with the same key run one after the other; null: in any order. */
  readonly orderKey: string | null;
}

/** A delivery that is about to be stored. */
export interface NewDelivery {
  readonly id: string;
  readonly source: string;
  /** Null when the body names none. */
  readonly event: string | null;
  /** Where in the body the handler's data are (RFC 6901). */
  readonly dataPointer: string;
  readonly contentType: string | null;
  /** The request body, byte for byte. */
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  /** The sender's own id of the delivery, by which a second one is known; null: it has none. */
  readonly dedupKey: string | null;
  /** None: nothing handles it now, so it waits for a replay. */
  readonly jobs: readonly NewJob[];
}

/** A job in hand: claimed by this process until its lease ends. */
export interface ClaimedJob {
  /** The number of the job in the store. */
  readonly job: number;
  readonly target: string;
  /** 1 for the first attempt; with the owner it fences off a claim whose lease has ended. */
  readonly attempt: number;
  readonly delivery: StoredDelivery;
}

/** A delivery as it is stored. */
export interface StoredDelivery {
  readonly id: string;
  readonly source: string;
  readonly event: string | null;
  readonly dataPointer: string;
  readonly contentType: string | null;
  readonly body: Uint8Array;
  readonly receivedAt: number;
}
