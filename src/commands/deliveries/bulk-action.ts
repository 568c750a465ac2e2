import type { DeliveryLog, DeliveryStatus } from '../../inbox/delivery-log.ts';

/** Why an action did not change a delivery. */
export type Refusal = 'not-found' | 'open' | 'no-handler' | 'settled';

/** The reasons as messages. */
export const REFUSALS: Readonly<Record<Refusal, string>> = {
  'not-found': 'there is no such delivery',
  open: 'it is still open; wait for its end, or discard it first',
  'no-handler': 'nothing handles it now',
  settled: 'nothing of it is open or dead',
};

/** An action on many deliveries. */
export interface BulkAction {
  /** As in "Replay 5 deliveries?". */
  readonly verb: string;
  /** As in "Replaying". */
  readonly doing: string;
  /** As in "5 deliveries replayed", and the key of the JSON summary. */
  readonly done: string;
  /** Whether a filter may match deliveries of this status. */
  eligible(status: DeliveryStatus): boolean;
  /** Acts on one delivery; resolves to undefined, or to why it was not changed. */
  act(log: DeliveryLog, id: string): Promise<Refusal | undefined>;
}
