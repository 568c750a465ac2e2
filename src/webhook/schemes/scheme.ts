/** The headers of a request as Node gives them: names in lower case, the values of repeated ones joined with ", ". */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Why a request is refused; for the log and the metrics only, never for the sender. */
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

export interface Refused {
  readonly ok: false;
  readonly reason: Refusal;
}

export type Verdict = { readonly ok: true } | Refused;

/** Checks the body as it was sent. */
export type BodyCheck = (body: Uint8Array) => Verdict;

/**
 * Checks the headers before the body is read. It refuses, or returns the check of the body. `now` is in milliseconds since
 * the epoch.
 */
export type Verifier = (headers: RequestHeaders, now: number) => Refused | BodyCheck;

/** A request to sign. */
export interface Outgoing {
  /** The same for all attempts to deliver a message. */
  readonly id: string;
  /** The time of this attempt, in whole seconds since the epoch. */
  readonly timestamp: number;
  readonly body: Uint8Array;
  /** Further headers, for schemes that sign headers; names in lower case. */
  readonly headers?: RequestHeaders;
}

/** Returns the headers that authenticate a request. Throws UnsignableError. */
export type Signer = (request: Outgoing) => Readonly<Record<string, string>>;

/** A way to authenticate requests. `Params` are its parameters beside the secrets. */
export interface Scheme<Params> {
  /** Why a text is not a valid secret, as the end of a sentence that starts with its name; undefined when it is valid. */
  secretProblem(secret: string): string | undefined;
  /**
   * Creates the check against any of the secrets; without secrets it refuses everything.
   * Throws UnusableSecretError.
   */
  verifier(secrets: readonly string[], params: Params): Verifier;
  /**
   * Creates the signer: with all secrets where the scheme allows several signatures, else with the first.
   * Throws UnusableSecretError.
   */
  signer(secrets: readonly string[], params: Params): Signer;
}

/** The verdict on a request that is authentic. */
export const accepted: Verdict = { ok: true };

/** The verdict on a request that is not authentic. */
export function refused(reason: Refusal): Refused {
  return { ok: false, reason };
}

/** The value of a header; undefined when it is missing. */
export function headerOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
