import type { ClaimedDelivery, NewDelivery } from './delivery.ts';

/**
 * The durable inbox of webhook deliveries.
 * Every method fails with StoreUnavailableError while the store cannot answer.
 */
export interface Inbox {
  /** Stores a delivery; resolves only once it is durable. */
  append(delivery: NewDelivery): Promise<void>;
  /**
   * Gives back the deliveries that a process which no longer lives has left `processing`; called once at the start.
   * Returns how many.
   */
  recover(): Promise<number>;
  /** Takes up to `limit` pending deliveries, oldest first, and marks them `processing`. */
  claim(limit: number): Promise<readonly ClaimedDelivery[]>;
  /** Records how the handling of a claimed delivery ended; `pending` gives it back, `unhandled` found no handler. */
  settle(id: string, status: 'done' | 'failed' | 'unhandled' | 'pending'): Promise<void>;
}
