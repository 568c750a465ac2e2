import { HttpProblem } from '@portico/transport';
import { ExpectedError } from '../core/errors.ts';
import type { MaybePromise } from '../core/scheduler.ts';

/** The body that creates or replaces a user. */
export interface NewUser {
  readonly name: string;
  readonly email: string;
}

/** A user as the GraphQL door shows it, with a string as id (CONTRACT.md#graphql-user). */
export interface User extends NewUser {
  readonly id: string;
}

/**
 * Reads the second path segment as an id (CONTRACT.md#rest-user: "read as an integer"). Ids are positive safe integers in
 * canonical decimal form; undefined for anything else.
 */
export function readUserId(segment: string): number | undefined {
  if (!/^[1-9]\d{0,15}$/.test(segment)) return undefined;
  const id = Number(segment);
  return Number.isSafeInteger(id) ? id : undefined;
}

/** Maximum length of a name, in UTF-16 code units. */
export const MAX_NAME = 500;
/** Maximum length of an email, in UTF-16 code units; RFC 5321 allows 64 + 1 + 255 octets. */
export const MAX_EMAIL = 320;

/**
 * Reads a new user from a parsed body; undefined unless `name` and `email` are non-blank strings of bounded
 * length and the email has an @ inside. Ignores other members. Refuses text that an engine would change: lone
 * surrogates have no UTF-8 form, and PostgreSQL cannot store NUL.
 */
export function readNewUser(body: unknown): NewUser | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { name, email } = body as { readonly name?: unknown; readonly email?: unknown };
  if (!isText(name, MAX_NAME) || !isText(email, MAX_EMAIL)) return undefined;
  return addressProblem(email) === undefined ? { name, email } : undefined;
}

/** A reason why a body is not a user; `pointer` is a JSON Pointer to the member, as a fragment. */
interface UserProblem {
  readonly detail: string;
  readonly pointer: string;
}

/** All reasons why `readNewUser` refuses a body. */
export function userProblems(body: unknown): readonly UserProblem[] {
  if (typeof body !== 'object' || body === null)
    return [{ detail: 'the body is not a JSON object', pointer: '#' }];
  const { name, email } = body as { readonly name?: unknown; readonly email?: unknown };
  const problems = {
    name: textProblem('name', name, MAX_NAME),
    email: textProblem('email', email, MAX_EMAIL) ?? addressProblem(email),
  };
  return Object.entries(problems).flatMap(([member, detail]) =>
    detail === undefined ? [] : [{ detail, pointer: `#/${member}` }],
  );
}

/** All problems of a body in one line. */
export function userProblem(body: unknown): string {
  return userProblems(body)
    .map(({ detail }) => detail)
    .join('; ');
}

/** The problem of a user that is too long; undefined if it is not. */
export function lengthProblem({ name, email }: NewUser): string | undefined {
  if (name.length > MAX_NAME) return tooLong('name', MAX_NAME);
  if (email.length > MAX_EMAIL) return tooLong('email', MAX_EMAIL);
  return undefined;
}

function addressProblem(email: unknown): string | undefined {
  return isAddress(String(email)) ? undefined : '"email" needs an @ between other characters';
}

/** Whether a text has an @ between other characters. */
export function isAddress(text: string): boolean {
  const at = text.indexOf('@');
  return at > 0 && at < text.length - 1;
}

function textProblem(member: string, value: unknown, max: number): string | undefined {
  if (value === undefined) return `"${member}" is missing`;
  if (typeof value !== 'string') return `"${member}" is not a string`;
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

/** A condition on the user that a write changes. */
export interface WriteCondition {
  /** The accepted versions; undefined for any. */
  readonly versions: readonly number[] | undefined;
  /** The user must have been changed last before this time, in milliseconds since 1970; undefined for any. */
  readonly before: number | undefined;
}

/** A change of some fields of a user, under a condition. */
export interface UserChange extends Partial<NewUser> {
  readonly condition: WriteCondition;
}

/** The outcome of a conditional write. */
export type ChangeOutcome =
  /** The changed user as JSON, and its new version. */
  | { readonly is: 'changed'; readonly json: string; readonly version: number }
  | { readonly is: 'removed' }
  /** The user does not meet the condition; nothing was written. */
  | { readonly is: 'refused' }
  | { readonly is: 'missing' };

/** A user as JSON, with its version: the time of its last change in milliseconds since 1970, or 0. */
export interface VersionedUser {
  readonly json: string;
  readonly version: number;
}

/** Identifies a create that clients may repeat and that takes effect once. */
export interface IdempotencyKey {
  readonly key: string;
  /** A digest of the request's body. */
  readonly fingerprint: string;
  /** How long the outcome is kept, in milliseconds. */
  readonly keptFor: number;
}

/** The outcome of a create with a key. */
export type IdempotentOutcome =
  /** The user that this or an earlier request with the key created, with the version it was created with. */
  | { readonly is: 'created'; readonly id: number; readonly version: number }
  /** The key was used before with another body. */
  | { readonly is: 'reused' }
  /** A request with the key is in progress. */
  | { readonly is: 'running' };

/** Passes on the result of a write; turns a UserRefusedError into a 409. */
export function accepted<T>(write: Promise<T>): Promise<T> {
  return write.catch((error: unknown) => {
    if (!(error instanceof UserRefusedError)) throw error;
    throw new HttpProblem(409, error.code, error.message);
  });
}

/** Text without NUL and lone surrogates, which engines cannot store unchanged. */
const STORABLE = '[^\\u0000\\ud800-\\udfff]';

const members = {
  name: {
    type: 'string',
    description: 'Any text that is not blank.',
    maxLength: MAX_NAME,
    pattern: `^(?=[^]*\\S)${STORABLE}*$`,
  },
  email: {
    type: 'string',
    description: 'A text with an @ between other characters.',
    maxLength: MAX_EMAIL,
    pattern: `^(?!@)${STORABLE.replace('[^', '[^@')}+@${STORABLE}+$`,
  },
} as const;

/**
 * The bodies that `readNewUser` accepts, as a JSON Schema; a test compares the two. `readNewUser` is
 * hand-written because every write calls it. It counts UTF-16 code units, the schema characters.
 */
export const newUserSchema = {
  type: 'object',
  description: 'A user to store. Other members are ignored.',
  required: ['name', 'email'],
  properties: members,
} as const;

/** A stored user, as a JSON Schema. */
export const userSchema = {
  type: 'object',
  required: ['id', 'name', 'email'],
  properties: {
    id: { type: 'integer', description: 'Assigned once and never reused.', minimum: 1 },
    name: { type: 'string' },
    email: { type: 'string' },
  },
} as const;

/**
 * A store of users: memory, SQLite or PostgreSQL. The GraphQL door works with any of them
 * (CONTRACT.md#graphql-user and #graphql-operations). Every method fails with StoreUnavailableError while a
 * database cannot answer.
 */
export interface UserStore {
  /** All users in creation order; a long list is read in pages. */
  all(): MaybePromise<Iterable<User> | AsyncIterable<User>>;
  /** The user whose id equals `id` as a string; undefined if there is none. */
  byId(id: string): MaybePromise<User | undefined>;
  /**
   * Stores a user and returns it with its new id. Fails with UserRefusedError if the user is invalid or the
   * store is full.
   */
  add(user: NewUser): MaybePromise<User>;
}

/** A store refused a user. The message is for the client: it names the field and the reason. */
export class UserRefusedError extends ExpectedError {
  override readonly name = 'UserRefusedError';
  readonly code: 'COLLECTION_FULL' | 'EMAIL_TAKEN' | 'INVALID_USER' | 'REFERENCED';

  constructor(code: UserRefusedError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The refusal of an email that another user has, if emails are unique. */
export function emailTaken(): UserRefusedError {
  return new UserRefusedError('EMAIL_TAKEN', 'Another user has this email');
}

/**
 * The indexes of users besides the id: none, name and email (`keys`), or also substrings of them (`text`).
 */
export const SEARCH_LEVELS = ['none', 'keys', 'text'] as const;
export type SearchLevel = (typeof SEARCH_LEVELS)[number];
