import type { NewUser } from './user.ts';

/** Longest name, in UTF-16 code units. */
export const MAX_NAME = 500;
/** Longest email: RFC 5321 allows 64 + 1 + 255 octets. */
export const MAX_EMAIL = 320;

/**
 * Reads a new user from a parsed body; undefined when the body is not one:
 * `name` and `email` non-empty strings of sane length, the email with an @ inside.
 * Other members are ignored. What no engine could give back byte for byte is refused:
 * lone surrogates have no UTF-8 form, and PostgreSQL stores no NUL.
 */
export function readNewUser(body: unknown): NewUser | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { name, email } = body as { readonly name?: unknown; readonly email?: unknown };
  if (!isText(name, MAX_NAME) || !isText(email, MAX_EMAIL)) return undefined;
  const at = email.indexOf('@');
  if (at <= 0 || at === email.length - 1) return undefined;
  return { name, email };
}

function isText(value: unknown, maxLength: number): value is string {
  return (
    typeof value === 'string' &&
    value.length <= maxLength &&
    value.trim() !== '' &&
    value.isWellFormed() &&
    !value.includes('\0')
  );
}
