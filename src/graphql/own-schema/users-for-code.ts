import type { Users } from '../../config/schema/graphql-code.ts';
import type { UserFeed } from '../../users/user-feed.ts';
import type { UserStore } from '../../users/user-store.ts';
import { showErrors } from '../users-schema.ts';

/** The users of the door as resolvers of the user's own get them: a refusal reaches the client, as from `createUser`. */
export function usersForCode(users: UserStore, feed: UserFeed): Users {
  return {
    all: () => users.all(),
    byId: (id) => users.byId(id),
    add: (user) => showErrors(() => users.add(user)),
    created: () => feed.subscribe('created'),
    updated: () => feed.subscribe('updated'),
    deleted: () => feed.subscribe('deleted'),
  };
}
