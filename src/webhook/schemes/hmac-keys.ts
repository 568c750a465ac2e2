import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';

export type HmacAlgorithm = 'sha1' | 'sha256' | 'sha512';

/** The length of a signature in bytes. */
export const hmacLengths: Readonly<Record<HmacAlgorithm, number>> = { sha1: 20, sha256: 32, sha512: 64 };

/** The signed bytes: the body between two texts in Latin-1. */
export interface SignedBytes {
  readonly before: string;
  readonly body: Uint8Array;
  readonly after: string;
}

/** Prepared keys for one algorithm. */
export interface HmacKeys {
  /** The signatures, in the order of the keys. */
  sign(bytes: SignedBytes): readonly Buffer[];
  /** Whether any presented signature, each of the algorithm's length, matches any key. */
  matches(presented: readonly Buffer[], bytes: SignedBytes): boolean;
}

/** Prepares the keys of an algorithm. */
export function hmacKeys(algorithm: HmacAlgorithm, secrets: readonly Uint8Array[]): HmacKeys {
  const keys = secrets.map((secret) => createSecretKey(secret));
  const sign = ({ before, body, after }: SignedBytes): readonly Buffer[] =>
    keys.map((key) => {
      const hmac = createHmac(algorithm, key);
      if (before !== '') hmac.update(before, 'latin1');
      hmac.update(body);
      if (after !== '') hmac.update(after, 'latin1');
      return hmac.digest();
    });
  return {
    sign,
    matches(presented, bytes) {
      let matches = false;
      // No early exit, so that timing does not reveal which secret matched.
      for (const expected of sign(bytes)) {
        for (const signature of presented) if (timingSafeEqual(expected, signature)) matches = true;
      }
      return matches;
    },
  };
}
