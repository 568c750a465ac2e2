/** Which deliveries a step of retention removes; never one with an open job. Times are in milliseconds since the epoch. */
export type PruneRule =
  /** Those whose jobs have all ended before `before`. */
  | { readonly kind: 'ended'; readonly before: number }
  /** Those without jobs that were received before `before`. */
  | { readonly kind: 'unhandled'; readonly before: number; readonly now: number }
  /** While the inbox is larger than `maxBytes`: those whose jobs have all ended before `before`, none of them dead. */
  | { readonly kind: 'excess'; readonly before: number; readonly maxBytes: number };

/** What a step did. */
export interface PruneStep {
  readonly removed: number;
  /** Entries that it looked at, a bounded number. */
  readonly looked: number;
  /** Whether there is nothing more to look at. */
  readonly isLast: boolean;
}
