/** Where deliveries are sent on to. Times are in milliseconds. */
export interface ForwardSettings {
  readonly name: string;
  readonly url: URL;
  /** Standard Webhooks secrets to sign with; none: not signed. */
  readonly secrets: readonly string[];
  /** The events that go there; undefined: all. */
  readonly events: readonly string[] | undefined;
  /** Whether the address may be of a private network. */
  readonly allowPrivate: boolean;
  readonly concurrency?: number;
  readonly timeout?: number;
  readonly attempts?: number;
}
