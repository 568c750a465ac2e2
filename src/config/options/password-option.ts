import { isPasswordHash, PasswordHashError, parsePasswordHash } from '../../http/auth/password-hash.ts';
import type { Kind } from './kind.ts';
import type { Option } from './option.ts';

const PLAIN = /^\P{Cc}+$/u;

/** What a password must be, to complete "must be …". */
export const expectedPassword =
  'a password without control characters, or a whole $scrypt$ or $argon2id$ hash that takes at most 256 MiB and about a second (portico hash-password makes one)';

/** Whether a text can be configured as a password: as itself, or as a hash that can be checked. */
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

function passwordKind(): Kind<string> {
  const accept = (text: string) => (isPassword(text) ? text : undefined);
  return {
    placeholder: 'text',
    expected: expectedPassword,
    emptyAllowed: false,
    fromText: accept,
    fromValue: (value) => (typeof value === 'string' ? accept(value) : undefined),
  };
}

/** A password or its hash; it may be missing. */
export function optionalPassword(spec: {
  readonly env: string;
  readonly unset: string;
  readonly description: string;
}): Option<string | undefined> {
  return { ...spec, kind: passwordKind(), default: undefined, secret: true };
}
