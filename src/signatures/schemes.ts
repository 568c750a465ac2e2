/** The headers of a request as Node provides them: names in lower case, repeated values joined with ", ". */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The reason for a refusal; for the log and the metrics only, never for the sender. */
export type Refusal =
  | 'no-signature'
  | 'malformed-signature'
  | 'too-many-signatures'
  | 'sha1-only'
  | 'wrong-signature'
  | 'no-timestamp'
  | 'malformed-timestamp'
  | 'too-old'
  | 'too-new'
  | 'no-id'
  | 'malformed-id'
  | 'no-signed-header'
  | 'no-token'
  | 'wrong-token';

/** Checks the received bytes of the body; undefined if it is authentic. */
type BodyCheck = (body: Uint8Array) => Refusal | undefined;

/** Checks the headers before the body is read, at `now` in milliseconds since the epoch. */
type Verifier = (headers: RequestHeaders, now: number) => Refusal | BodyCheck;

interface Outgoing {
  /** The id of the message, the same for all attempts to deliver it. */
  readonly id: string;
  /** The time of this attempt, in whole seconds since the epoch. */
  readonly timestamp: number;
  readonly body: Uint8Array;
  /** Additional headers, for schemes that sign headers; names in lower case. */
  readonly headers?: RequestHeaders;
}

/** Returns the headers that authenticate a request. Throws UnsignableError. */
export type Signer = (request: Outgoing) => Readonly<Record<string, string>>;

/** A way to authenticate requests, with its parameters. */
export interface Scheme {
  /** Creates a verifier that accepts any of the secrets, if any. Throws UnusableSecretError. */
  verifier(secrets: readonly string[]): Verifier;
  /** Creates a signer that uses all secrets if the scheme can, else the first. Throws UnusableSecretError. */
  signer(secrets: readonly string[]): Signer;
}

/** The value of a header; undefined if it is missing. */
export function headerOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
