import type { NewDelivery } from '../delivery.ts';

/** A place in a log of events: the number of one, and its moment in milliseconds since the epoch. */
export interface RelayPlace {
  readonly position: number;
  readonly at: number;
}

/**
 * Up to which event deliveries were made of the users' events, for all processes together. Events behind it are kept as
 * long as somebody moves it. Fails with StoreUnavailableError.
 */
export interface RelayStore {
  /** Where it is; it begins at `start` where it is nowhere. */
  begin(start: RelayPlace): Promise<RelayPlace>;
  /** Moves it and stores deliveries in the same commit; false where it is not at `from`: then nothing is stored. */
  move(from: RelayPlace, to: RelayPlace, deliveries: readonly NewDelivery[]): Promise<boolean>;
  /** Forgets where it is: nobody makes deliveries of events any more. */
  end(): Promise<void>;
}

/** How often it is moved at least, even to where it is already, in milliseconds: well within the shortest retention. */
export const RELAY_SIGN = 10 * 60_000;
