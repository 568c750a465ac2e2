import type { NewUser } from './user.ts';

/** Maximum length of a name, in UTF-16 code units. */
export const MAX_NAME = 500;
/** Maximum length of an email, in UTF-16 code units; RFC 5321 allows 64 + 1 + 255 octets. */
export const MAX_EMAIL = 320;

/**
 * Reads a new user from a parsed body; undefined unless `name` and `email` are non-empty strings of bounded length, the
 * email with an @ inside. Other members are ignored. Text that an engine would change is refused: lone surrogates have no
 * UTF-8 form, and PostgreSQL stores no NUL.
 */
export function readNewUser(body: unknown): NewUser | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { name, email } = body as { readonly name?: unknown; readonly email?: unknown };
  if (!isText(name, MAX_NAME) || !isText(email, MAX_EMAIL)) return undefined;
  return addressProblem(email) === undefined ? { name, email } : undefined;
}

/** One reason why a body is no user; `pointer` is the member's place in it, a JSON Pointer as a fragment. */
export interface UserProblem {
  readonly detail: string;
  readonly pointer: string;
}

/** Each reason why `readNewUser` refuses a body. */
export function userProblems(body: unknown): readonly UserProblem[] {
  if (typeof body !== 'object' || body === null)
    return [{ detail: 'the body is no JSON object', pointer: '#' }];
  const { name, email } = body as { readonly name?: unknown; readonly email?: unknown };
  const problems = {
    name: textProblem('name', name, MAX_NAME),
    email: textProblem('email', email, MAX_EMAIL) ?? addressProblem(email),
  };
  return Object.entries(problems).flatMap(([member, detail]) =>
    detail === undefined ? [] : [{ detail, pointer: `#/${member}` }],
  );
}

/** All that is wrong with a body in one line. */
export function userProblem(body: unknown): string {
  return userProblems(body)
    .map(({ detail }) => detail)
    .join('; ');
}

/** Why a user takes more memory than any user may; undefined when it does not. */
export function lengthProblem({ name, email }: NewUser): string | undefined {
  if (name.length > MAX_NAME) return tooLong('name', MAX_NAME);
  if (email.length > MAX_EMAIL) return tooLong('email', MAX_EMAIL);
  return undefined;
}

function addressProblem(email: unknown): string | undefined {
  const at = String(email).indexOf('@');
  if (at > 0 && at < String(email).length - 1) return undefined;
  return '"email" needs an @ between other characters';
}

function textProblem(member: string, value: unknown, max: number): string | undefined {
  if (value === undefined) return `"${member}" is missing`;
  if (typeof value !== 'string') return `"${member}" is no string`;
  if (value === '') return `"${member}" is empty`;
  if (value.trim() === '') return `"${member}" is blank`;
  if (value.length > max) return tooLong(member, max);
  return isText(value, max) ? undefined : `"${member}" has a character that cannot be stored`;
}

const tooLong = (member: string, max: number) => `"${member}" is longer than ${max} characters`;

function isText(value: unknown, maxLength: number): value is string {
  return (
    typeof value === 'string' &&
    value.length <= maxLength &&
    value.trim() !== '' &&
    value.isWellFormed() &&
    !value.includes('\0')
  );
}
