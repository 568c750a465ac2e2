import type { SearchLevel } from '../../users/user-list.ts';

/** What the users are indexed for besides their ids. Whoever opens a database without it leaves the indexes as they are. */
export interface UserIndexOptions {
  /** What lists can find users by. */
  readonly search: SearchLevel;
}

/** The names of the indexes, which both engines have. */
export const USER_INDEXES = ['users_name', 'users_email', 'users_text'] as const;
export type UserIndex = (typeof USER_INDEXES)[number];

/** The indexes that the options need. */
export function neededIndexes({ search }: UserIndexOptions): ReadonlySet<UserIndex> {
  const needed = new Set<UserIndex>();
  if (search !== 'none') needed.add('users_name').add('users_email');
  if (search === 'text') needed.add('users_text');
  return needed;
}
