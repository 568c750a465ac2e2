import type { MaybePromise } from '../core/scheduler.ts';

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
  | 'no-body-digest'
  | 'wrong-certificate-url'
  | 'no-certificate'
  | 'no-token'
  | 'wrong-token';

/** Checks the received bytes of the body; undefined if it is authentic. */
type BodyCheck<Checked> = (body: Uint8Array) => Checked;

/** The parts of a request besides its headers that some schemes sign. */
interface RequestHead {
  /** Path and query, as sent. */
  readonly target: string;
  readonly contentType: string | null;
}

/** Checks the headers before the body is read, at `now` in milliseconds since the epoch. */
type Verifier<Checked> = (
  headers: RequestHeaders,
  now: number,
  request?: RequestHead,
) => Refusal | BodyCheck<Checked>;

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
export interface Scheme<Checked = Refusal | undefined> {
  /** Creates a verifier that accepts any of the secrets, if any. Throws UnusableSecretError. */
  verifier(secrets: readonly string[]): Verifier<Checked>;
  /** Creates a signer that uses all secrets if the scheme can, else the first. Throws UnusableSecretError. */
  signer(secrets: readonly string[]): Signer;
}

/** A scheme whose check of a body may have to wait, such as for a certificate. */
export type AnyScheme = Scheme<MaybePromise<Refusal | undefined>>;

/** The value of a header; undefined if it is missing. */
export function headerOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
