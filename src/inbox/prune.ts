/** What a step of retention does: it removes deliveries, or frees what those have left. */
export type PruneRule = RemovalRule | BodiesRule;

/**
 * Where a store keeps bodies apart from their deliveries, in slots that it empties at once: a slot takes new bodies for
 * `age`, in milliseconds, and until it has `bytes`; null: no limit.
 */
export interface BodiesRule {
  readonly kind: 'bodies';
  readonly age: number;
  readonly bytes: number | null;
}

/** Which deliveries a step removes; never one with an open job. Times are in milliseconds since the epoch. */
export type RemovalRule =
  /** Those whose jobs have all ended before `before`. */
  | { readonly kind: 'ended'; readonly before: number; readonly remember?: number | undefined }
  /** Those without jobs that were received before `before`. */
  | { readonly kind: 'unhandled'; readonly before: number; readonly now: number }
  /** While the inbox is larger than `maxBytes`: those whose jobs have all ended before `before`, none of them dead. */
  | {
      readonly kind: 'excess';
      readonly before: number;
      readonly maxBytes: number;
      readonly remember?: number | undefined;
    };

/**
 * The `remember` of a rule: of the removed deliveries that were received at or after it, the dedup keys are remembered,
 * unless one of their jobs was dead, since a repeat may still handle that one. None for a rule without it.
 */
export function rememberedFrom(rule: RemovalRule): number | null {
  return 'remember' in rule ? (rule.remember ?? null) : null;
}

/** What a step did. */
export interface PruneStep {
  readonly removed: number;
  /** Entries that it looked at, a bounded number. */
  readonly looked: number;
  /** Whether there is nothing more to look at. */
  readonly isLast: boolean;
}
