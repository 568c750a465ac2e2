import { oneLine } from '../../core/quote.ts';
import { DatabaseOpenError } from '../../core/store-errors.ts';
import type { SearchLevel } from '../../users/search-level.ts';

/** What the users are indexed for besides their ids. Whoever opens a database without it leaves the indexes as they are. */
export interface UserIndexOptions {
  /** What lists can find users by. */
  readonly search: SearchLevel;
  /** Whether no two users may have the same email; default false. */
  readonly uniqueEmail?: boolean;
}

/** The names of the indexes, which both engines have. */
export const USER_INDEXES = ['users_name', 'users_email', 'users_email_unique', 'users_text'] as const;
export type UserIndex = (typeof USER_INDEXES)[number];

/** The indexes that the options need. */
export function neededIndexes({ search, uniqueEmail = false }: UserIndexOptions): ReadonlySet<UserIndex> {
  const needed = new Set<UserIndex>();
  if (uniqueEmail) needed.add('users_email_unique');
  if (search !== 'none') needed.add('users_name');
  if (search !== 'none' && !uniqueEmail) needed.add('users_email');
  if (search === 'text') needed.add('users_text');
  return needed;
}

/** Maximum number of emails that a refusal to open names. */
export const MAX_DUPLICATES = 5;

/** The refusal to make emails unique that are not: each email with the ids of its users. */
export function duplicateEmails(rows: readonly (readonly [email: string, ids: string])[]): DatabaseOpenError {
  const named = rows
    .slice(0, MAX_DUPLICATES)
    .map(([email, ids]) => `${oneLine(email)} (users ${oneLine(ids)})`);
  const more = rows.length > MAX_DUPLICATES ? ', and more' : '';
  return new DatabaseOpenError(
    `users share an email: ${named.join(', ')}${more}. Change or delete all but one of each, or turn users.uniqueEmail (USERS_UNIQUE_EMAIL) off.`,
  );
}
