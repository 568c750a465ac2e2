import type { DeliveryLog, DeliveryStatus } from '../../inbox/delivery-log.ts';

/** Why a delivery was left as it was. */
export type Refusal = 'not-found' | 'open' | 'no-handler' | 'settled';

/** What people are told of it. */
export const REFUSALS: Readonly<Record<Refusal, string>> = {
  'not-found': 'there is no such delivery',
  open: 'it is still open; wait for its end, or discard it first',
  'no-handler': 'nothing handles it now',
  settled: 'nothing of it is open or dead',
};

/** What can be done with many deliveries. */
export interface BulkAction {
  /** As in "Replay 5 deliveries?". */
  readonly verb: string;
  /** As in "Replaying". */
  readonly doing: string;
  /** As in "5 deliveries replayed", and the key of the JSON summary. */
  readonly done: string;
  /** What of a filter's deliveries is meant at all. */
  eligible(status: DeliveryStatus): boolean;
  /** Does it with one delivery; resolves to undefined, or why it was not done. */
  act(log: DeliveryLog, id: string): Promise<Refusal | undefined>;
}
