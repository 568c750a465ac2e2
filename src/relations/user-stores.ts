import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { didYouMean, quote } from '../core/text.ts';
import type { LocalUserFeed } from './events.ts';
import {
  IMPORT_BATCH,
  type ImportCheckpoint,
  type ImportPosition,
  type ImportTarget,
  MAX_TRANSACTION_ROWS,
} from './import.ts';
import { ImportError, type ReadFields, type ReadRecord, type Refusal } from './import-readers.ts';
import { USER_FIELDS, type UserFormat, type UserLists, type UserPage, userPages } from './lists.ts';
import type { RowStore } from './rows/rows.ts';
import {
  type ChangeOutcome,
  type IdempotencyKey,
  type IdempotentOutcome,
  lengthProblem,
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

/** The outcome of an import in one transaction. */
export type WholeImport = { readonly ids: readonly number[] } | { readonly taken: number };

/**
 * The users of a database (CONTRACT.md#rest-user), shared by the REST and GraphQL doors. Ids are positive
 * safe integers and never reused. Engines return JSON text, which they build faster than JavaScript could
 * from rows; REST sends it as it is, and GraphQL parses it.
 */
export abstract class DatabaseUserStore implements UserStore {
  /** The users as relations that refer to them see them; undefined if none does. */
  rows: RowStore | undefined;
  /** Filtered and sorted lists of users. */
  abstract readonly lists: UserLists;
  /** The user as a JSON object with the keys id, name and email in this order, and its version. */
  abstract read(id: number): MaybePromise<VersionedUser | undefined>;
  /** The first users in id order with `after` < id <= `upTo`, about `PAGE_BYTES` of them. */
  abstract page(format: UserFormat, after: number, upTo: number): MaybePromise<UserPage>;
  /** The highest id in the store; 0 if it is empty. */
  abstract lastId(): MaybePromise<number>;
  /** Identifies the state of all users; different after every change by any process. */
  abstract state(): MaybePromise<string>;
  /** Stores a user that `readNewUser` accepted, durably; resolves to its id. The version defaults to now. */
  abstract create(user: NewUser, version?: number): Promise<number>;
  /** Like `create`, but once per key: the outcome is stored in the same commit as the user. */
  abstract createOnce(user: NewUser, key: IdempotencyKey): Promise<IdempotentOutcome>;
  /**
   * Stores users that `readNewUser` accepted, in order and in one commit. Resolves to their ids; undefined
   * for a user whose email is taken, if emails are unique.
   */
  abstract importUsers(
    users: readonly NewUser[],
    checkpoint?: ImportCheckpoint,
  ): Promise<readonly (number | undefined)[]>;
  /**
   * Like `importUsers`, but stores all users or none: `taken` is the index of the first one whose email is
   * taken.
   */
  abstract importAll(users: readonly NewUser[], checkpoint?: ImportCheckpoint): Promise<WholeImport>;
  /** Starts or resumes an import with a key; resolves to its position. */
  abstract beginImport(key: string): Promise<ImportPosition>;
  /** Replaces name and email durably; resolves to false if no user has that id. */
  abstract update(id: number, user: NewUser): Promise<boolean>;
  /**
   * Removes a user durably; resolves to false if no user has that id. Fails with UserRefusedError if rows refer
   * to the user, as `removeIf` does.
   */
  abstract remove(id: number): Promise<boolean>;
  /** Changes some fields of a user durably, if the user meets the condition. */
  abstract change(id: number, change: UserChange): Promise<ChangeOutcome>;
  /** Removes a user durably, if the user meets the condition. */
  abstract removeIf(id: number, condition: WriteCondition): Promise<ChangeOutcome>;

  /** The user as a JSON object; undefined if there is none. */
  readJson(id: number): MaybePromise<string | undefined> {
    return whenReady(this.read(id), (user) => user?.json);
  }

  all(): MaybePromise<Iterable<User> | AsyncIterable<User>> {
    return whenReady(this.page('json', 0, Number.MAX_SAFE_INTEGER), (page) =>
      page.more
        ? // Each iterator starts from the beginning, since a caller may iterate several times.
          { [Symbol.asyncIterator]: () => this.#usersFrom(page) }
        : usersOf(page),
    );
  }

  /** The users from a page on, up to the last one at the time of the call. */
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

/** The user of a JSON object from an engine; its id becomes a string (CONTRACT.md#graphql-user). */
export function userOfJson(json: string): User {
  return toUser(JSON.parse(json) as StoredUser);
}

interface StoredUser extends NewUser {
  readonly id: number;
}

function toUser({ id, name, email }: StoredUser): User {
  return { id: String(id), name, email };
}

/** Imports of users. */
export function userImports(
  users: Pick<DatabaseUserStore, 'importUsers' | 'importAll'>,
): ImportTarget<NewUser, number> {
  return {
    name: 'users',
    maxLine: MAX_LINE,
    batchRows: IMPORT_BATCH,
    maxRows: MAX_TRANSACTION_ROWS,
    read: readRecord,
    readHeader,
    identify: ({ name, email }) => `${name}\0${email}`,
    async store(rows, checkpoint) {
      const ids = await users.importUsers(rows, checkpoint);
      return rows.map((_, i) => {
        const id = ids[i];
        return id === undefined ? EMAIL_TAKEN : { id };
      });
    },
    async storeAll(rows, checkpoint) {
      const stored = await users.importAll(rows, checkpoint);
      return 'taken' in stored ? { refused: [[stored.taken, EMAIL_TAKEN]] } : stored;
    },
  };
}

/** Maximum length of a line of an import, in UTF-16 code units; at least the size of a single create. */
export const MAX_LINE = 64 * 1024;

/** The refusal of a line whose email another user has. */
export const EMAIL_TAKEN: Refusal = { code: 'EMAIL_TAKEN', reason: 'Another user has this email' };

/** Validates a record like the body of a create. */
function readRecord(record: unknown): ReadRecord<NewUser> {
  const row = readNewUser(record);
  return row === undefined ? { code: 'INVALID_USER', reason: userProblem(record) } : { row };
}

/**
 * Reads the header of a CSV: `name` and `email` in any order and case. Ignores `id`, which exports contain.
 * Throws ImportError.
 */
function readHeader(header: readonly string[]): ReadFields<NewUser> {
  const names = header.map((name) => name.toLowerCase());
  const known: readonly string[] = USER_FIELDS;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw wrong(
      `There is no column ${quote(unknown)}${didYouMean(unknown, known)}; there are id, name and email`,
    );
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw wrong(`The column ${quote(twice)} occurs twice`);
  for (const needed of ['name', 'email']) {
    if (!names.includes(needed)) throw wrong(`The first line does not name the column ${quote(needed)}`);
  }
  const [name, email] = [names.indexOf('name'), names.indexOf('email')];
  return (fields) => readRecord({ name: fields[name] ?? '', email: fields[email] ?? '' });
}

function wrong(problem: string): ImportError {
  return new ImportError('INVALID_IMPORT', problem, 1);
}

/** Users in memory, initially the two of the contract (CONTRACT.md#graphql-user). */
export class MemoryUserStore implements UserStore {
  readonly #feed: LocalUserFeed;
  readonly #maxUsers: number;
  readonly #users: User[] = [
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
    { id: '2', name: 'Alan Turing', email: 'alan@example.com' },
  ];

  constructor(feed: LocalUserFeed, maxUsers: number) {
    this.#feed = feed;
    this.#maxUsers = maxUsers;
  }

  all(): readonly User[] {
    return this.#users;
  }

  /**
   * CONTRACT.md#graphql-operations: string equality, so '01' matches no id. The user with the id '1' is the
   * first.
   */
  byId(id: string): User | undefined {
    const user = this.#users[Number(id) - 1];
    return user?.id === id ? user : undefined;
  }

  /**
   * Accepts any texts, even empty ones: CONTRACT.md#graphql-operations appends each user and requires only
   * strings. Sizes are left open (CONTRACT.md#limits), memory is bounded and nothing removes users, so a long
   * text and a full store are refused with UserRefusedError.
   */
  add({ name, email }: NewUser): User {
    const problem = lengthProblem({ name, email });
    if (problem !== undefined) throw new UserRefusedError('INVALID_USER', `The user is refused: ${problem}`);
    if (this.#users.length >= this.#maxUsers) {
      throw new UserRefusedError(
        'COLLECTION_FULL',
        `There are ${this.#maxUsers} users already, which is the maximum`,
      );
    }
    // CONTRACT.md#graphql-user: the id is the decimal string of (number of users + 1)
    const user = { id: String(this.#users.length + 1), name, email };
    this.#users.push(user);
    this.#feed.publish(user);
    return user;
  }
}
