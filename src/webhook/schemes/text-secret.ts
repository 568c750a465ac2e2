import { UnusableSecretError } from './scheme-error.ts';

/** Why a text is not a valid plain-text secret; undefined when it is. */
export function textSecretProblem(secret: string): string | undefined {
  if (/^(?!\s)\P{Cc}+(?<!\s)$/u.test(secret)) return undefined;
  return 'must be a text without control characters or spaces at its ends, and not empty';
}

/** The secrets' UTF-8 bytes. Throws UnusableSecretError. */
export function textKeys(secrets: readonly string[]): readonly Uint8Array[] {
  return secrets.map((secret) => {
    const problem = textSecretProblem(secret);
    if (problem !== undefined) throw new UnusableSecretError(problem);
    return Buffer.from(secret);
  });
}

/** The secret that signs where a scheme allows one signature. Throws UnusableSecretError without secrets. */
export function firstOf<T>(keys: readonly T[]): T {
  const [first] = keys;
  if (first === undefined) throw new UnusableSecretError('that can sign is needed; configure one');
  return first;
}
