import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { ImportCheckpoint, ImportPosition } from './import-position.ts';
import type { UserLists } from './lists.ts';
import { type UserFormat, type UserPage, userPages } from './pages.ts';
import {
  type ChangeOutcome,
  type IdempotencyKey,
  type IdempotentOutcome,
  type NewUser,
  readNewUser,
  readUserId,
  type User,
  type UserChange,
  UserRefusedError,
  type UserStore,
  userProblem,
  type VersionedUser,
  type WriteCondition,
} from './user.ts';

/** What became of users that are stored together or not at all. */
export type WholeImport = { readonly ids: readonly number[] } | { readonly taken: number };

/**
 * The users of a database (CONTRACT.md#rest-user), which the REST and the GraphQL door share.
 * Ids are positive safe integers that are never reused. Engines read JSON text, because they build it faster than
 * rows can be turned into it here; REST sends that text, and what GraphQL asks for is parsed from it.
 */
export abstract class DatabaseUserStore implements UserStore {
  /** Parts of the users, found and sorted by indexes. */
  abstract readonly lists: UserLists;
  /** The user as a JSON object with the keys id, name, email in this order, and its version. */
  abstract read(id: number): MaybePromise<VersionedUser | undefined>;
  /** The first users in id order with `after` < id <= `upTo`, about `PAGE_BYTES` of them. */
  abstract page(format: UserFormat, after: number, upTo: number): MaybePromise<UserPage>;
  /** The highest id in the store, 0 when it is empty. */
  abstract lastId(): MaybePromise<number>;
  /** What names the state of all users; another one after every change, whoever made it. */
  abstract state(): MaybePromise<string>;
  /** Stores a user that `readNewUser` accepted, durably; resolves to its id. Its version is now unless it is given. */
  abstract create(user: NewUser, version?: number): Promise<number>;
  /** The same once per key; the outcome is stored with the user, in one commit. */
  abstract createOnce(user: NewUser, key: IdempotencyKey): Promise<IdempotentOutcome>;
  /**
   * Stores users that `readNewUser` accepted, in order and one commit. Resolves to their ids: undefined for one whose
   * email another user has, where emails are unique.
   */
  abstract importUsers(
    users: readonly NewUser[],
    checkpoint?: ImportCheckpoint,
  ): Promise<readonly (number | undefined)[]>;
  /** The same, but all of them or none: `taken` is the first one whose email another user has. */
  abstract importAll(users: readonly NewUser[], checkpoint?: ImportCheckpoint): Promise<WholeImport>;
  /** Begins an import with a key, or goes on with it; resolves to its position. */
  abstract beginImport(key: string): Promise<ImportPosition>;
  /** Replaces name and email durably; resolves to false when no user has that id. */
  abstract update(id: number, user: NewUser): Promise<boolean>;
  /** Removes a user durably; resolves to false when no user has that id. */
  abstract remove(id: number): Promise<boolean>;
  /** Changes some fields of a user durably, if it has one of the versions that are meant. */
  abstract change(id: number, change: UserChange): Promise<ChangeOutcome>;
  /** Removes a user durably, if it has one of the versions that are meant. */
  abstract removeIf(id: number, condition: WriteCondition): Promise<ChangeOutcome>;

  /** The user as a JSON object; undefined when there is none. */
  readJson(id: number): MaybePromise<string | undefined> {
    return whenReady(this.read(id), (user) => user?.json);
  }

  all(): MaybePromise<Iterable<User> | AsyncIterable<User>> {
    return whenReady(this.page('json', 0, Number.MAX_SAFE_INTEGER), (page) =>
      page.more
        ? // It may be read by several, each from its beginning.
          { [Symbol.asyncIterator]: () => this.#usersFrom(page) }
        : usersOf(page),
    );
  }

  /** The users from a page on, up to the last one that there is now. */
  async *#usersFrom(first: UserPage): AsyncGenerator<User> {
    const range = { after: first.lastId, upTo: await this.lastId() };
    yield* usersOf(first);
    for await (const page of userPages(this, 'json', range)) yield* usersOf(page);
  }

  byId(id: string): MaybePromise<User | undefined> {
    const number = readUserId(id);
    if (number === undefined) return undefined;
    return whenReady(this.readJson(number), (json) => (json === undefined ? undefined : userOfJson(json)));
  }

  /** Fails with UserRefusedError for a user that `readNewUser` refuses. */
  async add(newUser: NewUser): Promise<User> {
    const user = readNewUser(newUser);
    if (user === undefined) {
      throw new UserRefusedError('INVALID_USER', `The user is refused: ${userProblem(newUser)}`);
    }
    return { id: String(await this.create(user)), ...user };
  }
}

function usersOf({ bytes }: UserPage): readonly User[] {
  return (JSON.parse(`[${bytes.subarray(1)}]`) as readonly StoredUser[]).map(toUser);
}

/** The user of a JSON object as engines build it; its id becomes a string (CONTRACT.md#graphql-user). */
export function userOfJson(json: string): User {
  return toUser(JSON.parse(json) as StoredUser);
}

interface StoredUser extends NewUser {
  readonly id: number;
}

function toUser({ id, name, email }: StoredUser): User {
  return { id: String(id), name, email };
}
