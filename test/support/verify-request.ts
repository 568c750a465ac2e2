import type { Refusal, RequestHeaders, Verifier } from '../../src/signatures/schemes.ts';

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: Refusal };

/** Checks a whole request at once. `now` is in milliseconds since the epoch. */
export function verify(verifier: Verifier, headers: RequestHeaders, body: Uint8Array, now: number): Verdict {
  const step = verifier(headers, now);
  const reason = typeof step === 'function' ? step(body) : step;
  return reason === undefined ? { ok: true } : { ok: false, reason };
}
