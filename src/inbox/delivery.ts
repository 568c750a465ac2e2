import type { DeliveryHeaders } from './delivery-headers.ts';

/** A webhook delivery as its handler gets it. */
export interface Delivery {
  /** Stable and globally unique (UUID version 7): a handler can make its own effects idempotent with it. */
  readonly id: string;
  /** The name of the signed source that sent it; empty for /webhook itself. */
  readonly source: string;
  /** The kind of event (contract 2.5). */
  readonly event: string;
  /** The event's own payload, not validated (contract 2.5). */
  readonly data: unknown;
  readonly receivedAt: Date;
  /** The headers of the request that its source keeps, by name in lower case. */
  readonly headers: DeliveryHeaders;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** A job to create: one target for one delivery. */
export interface NewJob {
  /** The name of the handler or forward address. */
  readonly target: string;
  /** Jobs of one target with the same key run one after the other; null: in any order. */
  readonly orderKey: string | null;
  /** It is not due before this time, in milliseconds since the epoch; default at once. */
  readonly runAt?: number | undefined;
  /** From 0 up to MAX_PRIORITY; default 0. */
  readonly priority?: number | undefined;
}

/** A delivery as it is stored. */
export interface StoredDelivery {
  readonly id: string;
  readonly source: string;
  /** Null when the body names none. */
  readonly event: string | null;
  /** JSON pointer (RFC 6901) to the handler's data in the body. */
  readonly dataPointer: string;
  readonly contentType: string | null;
  /** The kept headers of the request as a JSON object, by name in lower case; null or absent without any. */
  readonly headers?: string | null | undefined;
  /** Where its request stood in a trace, as `storedTrace` writes it; null or absent without one. */
  readonly trace?: string | null | undefined;
  /** The request body, byte for byte. */
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
}

/** A delivery to store. */
export interface NewDelivery extends StoredDelivery {
  /** The sender's own id of the delivery, which identifies duplicates; null: it has none. */
  readonly dedupKey: string | null;
  /** Empty when nothing handles it: it then waits for a replay. */
  readonly jobs: readonly NewJob[];
}

/** A job that this process has claimed: leased until its lease ends. */
export interface ClaimedJob {
  /** The number of the job in the database. */
  readonly job: number;
  readonly target: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** How often its process has died; with the attempt and the owner it fences off a claim whose lease has ended. */
  readonly deaths: number;
  /** Whether it has an order key. */
  readonly ordered: boolean;
  readonly delivery: StoredDelivery;
}
