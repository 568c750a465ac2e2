import type { NewUser } from './user.ts';

/** Which versions of a user a write is meant for. */
export interface WriteCondition {
  /** The versions, one of which it must have; undefined for any. */
  readonly versions: readonly number[] | undefined;
  /** The moment before which it must have been changed last, in milliseconds since 1970; undefined for any. */
  readonly before: number | undefined;
}

/** A write of some fields of a user, under a condition. */
export interface UserChange extends Partial<NewUser> {
  readonly condition: WriteCondition;
}

/** What became of a conditional write. */
export type ChangeOutcome =
  /** The user as it is now, as JSON, and its new version. */
  | { readonly is: 'changed'; readonly json: string; readonly version: number }
  | { readonly is: 'removed' }
  /** It has another version; nothing was written. */
  | { readonly is: 'refused' }
  | { readonly is: 'missing' };

/** A user as JSON, with its version: 0, or the moment of its last change in milliseconds since 1970. */
export interface VersionedUser {
  readonly json: string;
  readonly version: number;
}
