import { isPasswordHash, PasswordHashError, parsePasswordHash } from '../../http/auth/password-hash.ts';

const PLAIN = /^\P{Cc}+$/u;

/** Completes "must be …" for a password. */
export const expectedPassword =
  'a password without control characters, or a whole $scrypt$ or $argon2id$ hash that takes at most 256 MiB and about a second (portico hash-password makes one)';

/** Whether a text is a plain password or a hash that Portico can verify. */
export function isPassword(text: string): boolean {
  if (!PLAIN.test(text)) return false;
  if (!isPasswordHash(text)) return true;
  try {
    parsePasswordHash(text);
    return true;
  } catch (error) {
    if (error instanceof PasswordHashError) return false;
    throw error;
  }
}
