import type { NewUser } from '../users/user.ts';
import { folded } from '../users/user-list.ts';

/** The index of the first user whose email one before it has; undefined where there is none. */
export function firstDuplicate(users: readonly NewUser[]): number | undefined {
  const seen = new Set<string>();
  const found = users.findIndex(({ email }) => seen.size === seen.add(folded(email)).size);
  return found === -1 ? undefined : found;
}

/** The earlier one of two indexes that may be missing. */
export function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
