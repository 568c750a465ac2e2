/** The headers of a request as Node gives them: names in lower case, the values of repeated ones joined with ", ". */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Why a request is refused: for the log and the metrics only, a sender is told nothing of it. */
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

/** Checks the body, byte for byte as it was sent. */
export type BodyCheck = (body: Uint8Array) => Verdict;

/**
 * Checks the headers, which can be done before the body is read. It refuses, or gives what checks the body.
 * `now` is in milliseconds since the epoch.
 */
export type Verifier = (headers: RequestHeaders, now: number) => Refused | BodyCheck;

/** A request that is about to be sent. */
export interface Outgoing {
  /** Stable over all attempts to deliver the same message. */
  readonly id: string;
  /** Of this attempt, in whole seconds since the epoch. */
  readonly timestamp: number;
  readonly body: Uint8Array;
  /** What else the request carries, for schemes that sign headers; names in lower case. */
  readonly headers?: RequestHeaders;
}

/** Gives the headers that prove where a request comes from. Throws UnsignableError. */
export type Signer = (request: Outgoing) => Readonly<Record<string, string>>;

/** One way to prove where a request comes from. `Params` is what else the two sides agree on. */
export interface Scheme<Params> {
  /** Why a text cannot be a secret of this scheme, to be put behind its name; undefined when it can. */
  secretProblem(secret: string): string | undefined;
  /**
   * Prepares the check against any of the secrets; without one it refuses everything.
   * Throws UnusableSecretError.
   */
  verifier(secrets: readonly string[], params: Params): Verifier;
  /**
   * Prepares the signing: with all secrets where the scheme carries several signatures, else with the first.
   * Throws UnusableSecretError.
   */
  signer(secrets: readonly string[], params: Params): Signer;
}

export const accepted: Verdict = { ok: true };

export function refused(reason: Refusal): Refused {
  return { ok: false, reason };
}

/** Checks a whole request at once. `now` is in milliseconds since the epoch. */
export function verify(verifier: Verifier, headers: RequestHeaders, body: Uint8Array, now: number): Verdict {
  const step = verifier(headers, now);
  return typeof step === 'function' ? step(body) : step;
}

/** A header that stands once; undefined when it is missing. */
export function headerOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
