/** A forward address. Times are in milliseconds. */
export interface ForwardSettings {
  readonly name: string;
  readonly url: URL;
  /** Standard Webhooks secrets for the signature; empty: unsigned. */
  readonly secrets: readonly string[];
  /** The forwarded events; undefined: all. */
  readonly events: readonly string[] | undefined;
  /** Whether the address may be in a private network. */
  readonly allowPrivate: boolean;
  readonly concurrency?: number;
  readonly timeout?: number;
  readonly attempts?: number;
}
