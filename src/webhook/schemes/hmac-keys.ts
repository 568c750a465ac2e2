import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';

export type HmacAlgorithm = 'sha1' | 'sha256' | 'sha512';

/** Bytes of a signature. */
export const hmacLengths: Readonly<Record<HmacAlgorithm, number>> = { sha1: 20, sha256: 32, sha512: 64 };

/** The bytes that are signed: the body between two texts, which stand for one byte a character. */
export interface SignedBytes {
  readonly before: string;
  readonly body: Uint8Array;
  readonly after: string;
}

/** Keys for one algorithm, prepared once. */
export interface HmacKeys {
  /** The signatures, in the order of the keys. */
  sign(bytes: SignedBytes): readonly Buffer[];
  /** Whether any of the presented signatures, each of the algorithm's length, is that of any key. */
  matches(presented: readonly Buffer[], bytes: SignedBytes): boolean;
}

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
      // No early exit: which secret matched must not show.
      for (const expected of sign(bytes)) {
        for (const signature of presented) if (timingSafeEqual(expected, signature)) matches = true;
      }
      return matches;
    },
  };
}
