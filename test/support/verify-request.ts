import type { RequestHeaders, Verdict, Verifier } from '../../src/webhook/schemes/scheme.ts';

/** Checks a whole request at once. `now` is in milliseconds since the epoch. */
export function verify(verifier: Verifier, headers: RequestHeaders, body: Uint8Array, now: number): Verdict {
  const step = verifier(headers, now);
  return typeof step === 'function' ? step(body) : step;
}
