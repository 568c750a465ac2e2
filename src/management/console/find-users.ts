import { setImmediate as nextTick } from 'node:timers/promises';
import type { DatabaseUserStore } from '../../users/database-user-store.ts';

/** Which users a page of the list has. */
export interface UserQuery {
  /** Found anywhere in name or email, in any case; empty for all users. */
  readonly text: string;
  readonly descending: boolean;
  readonly limit: number;
  /** The id behind which the page begins, in its order. */
  readonly cursor: number | undefined;
}

interface ListedUser {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

/** A page of the list; `next` is the cursor of the next one, null on the last. */
export interface FoundUsers {
  readonly items: readonly ListedUser[];
  readonly next: number | null;
}

/** Ids that are looked at together. */
const STRETCH = 1_000;
/** A request looks at so many stretches; a page may be short, and the next one goes on. */
const MAX_STRETCHES = 50;

/** A page of users by their ids. The event loop runs other work between two stretches. */
export async function findUsers(
  users: Pick<DatabaseUserStore, 'page' | 'lastId'>,
  { text, descending, limit, cursor }: UserQuery,
): Promise<FoundUsers> {
  const last = await users.lastId();
  const wanted = text.toLowerCase();
  const matches = ({ name, email }: ListedUser) =>
    wanted === '' || name.toLowerCase().includes(wanted) || email.toLowerCase().includes(wanted);
  const items: ListedUser[] = [];
  let edge = cursor ?? (descending ? last + 1 : 0);
  for (let count = 0; count < MAX_STRETCHES; count++) {
    const isOver = descending ? edge <= 1 : edge >= last;
    if (isOver) return { items, next: null };
    const from = descending ? Math.max(0, edge - 1 - STRETCH) : edge;
    const upTo = descending ? edge - 1 : Math.min(last, edge + STRETCH);
    const { json } = await users.page(from, upTo, STRETCH);
    const stretch = JSON.parse(`[${json}]`) as ListedUser[];
    if (descending) stretch.reverse();
    for (const user of stretch.filter(matches)) {
      if (items.length === limit) return { items, next: items.at(-1)?.id ?? null };
      items.push(user);
    }
    edge = descending ? from + 1 : upTo;
    await nextTick();
  }
  return { items, next: edge };
}
