import type { MaybePromise } from '../core/maybe-promise.ts';
import type { NewDelivery } from './delivery.ts';
import type { Appended } from './inbox.ts';

/** From where to where a mark moves, in milliseconds since the epoch. */
export interface MarkMove {
  readonly name: string;
  /** Where it is; 0 for one that was never set. */
  readonly from: number;
  readonly to: number;
}

/**
 * Marks say how far something has come that happens once for all processes, such as the deliveries of a schedule. Of
 * several processes that move a mark from the same place, one succeeds. Fails with StoreUnavailableError.
 */
export interface Marks {
  /** Where the marks with these names are; those that were never set are missing. */
  read(names: readonly string[]): MaybePromise<ReadonlyMap<string, number>>;
  /** Moves a mark; resolves to false when it is not at `from`. */
  move(move: MarkMove): Promise<boolean>;
  /** Moves a mark and stores a delivery in the same commit; undefined when the mark is not at `from`: nothing is stored. */
  append(move: MarkMove, delivery: NewDelivery): Promise<Appended | undefined>;
  /** The wall clock that marks follow: that of the server where there is one. It may be set back. */
  clock(): MaybePromise<number>;
}
