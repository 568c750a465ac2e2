import type { UserFeed } from './user-feed.ts';
import type { UserStore } from './user-store.ts';

/** A store that tells a feed of each user once it is stored durably, whichever door created it. */
export function announcingUserStore(store: UserStore, feed: UserFeed): UserStore {
  return {
    readJson: (id) => store.readJson(id),
    page: (after, upTo, limit) => store.page(after, upTo, limit),
    lastId: () => store.lastId(),
    update: (id, user) => store.update(id, user),
    remove: (id) => store.remove(id),
    async create(user) {
      const id = await store.create(user);
      feed.publish({ id: String(id), ...user });
      return id;
    },
  };
}
