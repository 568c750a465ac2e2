/** A create that may come several times and counts once. */
export interface IdempotencyKey {
  readonly key: string;
  /** A digest of what was sent with the key. */
  readonly fingerprint: string;
  /** How long the outcome is kept, in milliseconds. */
  readonly keptFor: number;
}

/** What became of such a create. */
export type IdempotentOutcome =
  /** The user that was created now, or by an earlier request with the key; `version` is the first one of the user. */
  | { readonly is: 'created'; readonly id: number; readonly version: number }
  /** The key came with something else before. */
  | { readonly is: 'reused' }
  /** A request with the key is in progress. */
  | { readonly is: 'running' };
