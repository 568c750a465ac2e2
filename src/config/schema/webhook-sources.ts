/** A secret as it stands in the configuration, or the name of the variable or file that holds it. */
export type SecretConfig = string | { readonly env: string } | { readonly file: string };

/** Where a text of a request stands: in a header, or in the body at a JSON pointer (RFC 6901). */
export type PlaceConfig = { readonly header: string } | { readonly pointer: string };

interface EverySource {
  /** Any of them is accepted, so that one can be rotated. */
  readonly secrets: SecretConfig | readonly SecretConfig[];
  /** Where the event is named. */
  readonly event?: PlaceConfig;
  /** The sender's events by names of our own; every other keeps its name. */
  readonly events?: Readonly<Record<string, string>>;
  /** Where in the body the data is, as a JSON pointer (RFC 6901). */
  readonly data?: string;
  /** What is the same in every attempt to deliver the same event; false: every request is an event of its own. */
  readonly dedup?: PlaceConfig | false;
}

interface Timed {
  /** How old or how far ahead a request may be, in seconds; default 300, 0: any. */
  readonly tolerance?: number;
}

/** Standard Webhooks: secrets begin with `whsec_` (shared) or `whpk_` (the sender's public key). */
interface StandardSource extends EverySource, Timed {
  readonly scheme: 'standard';
  /** What the names of its headers begin with; default `webhook`, some senders use `svix`. */
  readonly headerPrefix?: string;
}

interface GitHubSource extends EverySource {
  readonly scheme: 'github';
}

interface StripeSource extends EverySource, Timed {
  readonly scheme: 'stripe';
}

interface SlackSource extends EverySource, Timed {
  readonly scheme: 'slack';
}

/** An HMAC in a header. */
interface HmacSource extends EverySource, Timed {
  readonly scheme: 'hmac';
  /** The header with the signature. */
  readonly header: string;
  /** Default sha256. */
  readonly algorithm?: 'sha1' | 'sha256' | 'sha512';
  /** Default hex. */
  readonly encoding?: 'hex' | 'base64';
  /** What stands before the signature in the header, like `sha256=`; default nothing. */
  readonly prefix?: string;
  /** The header with the time of the request, in whole seconds; default none. */
  readonly timestampHeader?: string;
  /**
   * What is signed: text with `{body}` once, `{timestamp}` and `{header:NAME}`.
   * Default `{body}`, and `{timestamp}.{body}` with a timestamp.
   */
  readonly template?: string;
}

/** The shared secret itself in a header. */
interface TokenSource extends EverySource {
  readonly scheme: 'token';
  /** Default x-webhook-token. */
  readonly header?: string;
}

/** A sender of webhooks, as data. */
export type SourceConfig =
  | StandardSource
  | GitHubSource
  | StripeSource
  | SlackSource
  | HmacSource
  | TokenSource;

/** The senders by name: a lower-case letter, then lower-case letters, digits and "-". */
export type SourcesConfig = Readonly<Record<string, SourceConfig>>;

/** An address that deliveries are sent on to. Times are in milliseconds. */
export interface ForwardConfig {
  readonly url: string;
  /** Standard Webhooks secrets to sign with; none: not signed. */
  readonly secrets?: SecretConfig | readonly SecretConfig[];
  /** The events that go there; default all. */
  readonly events?: readonly string[];
  /** Whether the address may be of a private network; default false. */
  readonly allowPrivate?: boolean;
  readonly concurrency?: number;
  readonly timeout?: number;
  readonly attempts?: number;
}

/** The addresses by name. */
export type ForwardsConfig = Readonly<Record<string, string | ForwardConfig>>;
