import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { DatabaseUserStore, type UserPage } from '../../users/database-user-store.ts';
import type { LocalUserFeed } from '../../users/local-user-feed.ts';
import type { NewUser } from '../../users/user.ts';
import type { SearchLevel, UserLists } from '../../users/user-list.ts';
import { counted, type DatabaseObserver, type ReadTally } from '../observer.ts';
import { PageCache } from './page-cache.ts';
import { readRow } from './read-row.ts';
import type { TickSnapshot } from './tick-snapshot.ts';
import { sqliteUserLists } from './user-lists.ts';
import type { WriteQueue } from './writer/write-queue.ts';

const USER_JSON = `json_object('id', id, 'name', name, 'email', email)`;

export interface SqliteUserStoreOptions {
  /** Reads users, on the caller's thread. */
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  readonly observer: DatabaseObserver;
  /** Gets each user that is created, once it is stored durably. */
  readonly feed: LocalUserFeed;
  /** Of `reads`, where other connections write: reads share it, and pages are cached until the next commit. */
  readonly snapshot: TickSnapshot | undefined;
  /** What the users are indexed for. */
  readonly search: SearchLevel;
}

/** Users in SQLite: reads on the caller's thread, writes through the queue. */
export class SqliteUserStore extends DatabaseUserStore {
  readonly lists: UserLists;
  readonly #snapshot: TickSnapshot | undefined;
  readonly #pages = new PageCache();
  readonly #writes: WriteQueue;
  readonly #feed: LocalUserFeed;
  readonly #read: StatementSync;
  readonly #page: StatementSync;
  readonly #lastId: StatementSync;
  readonly #tallies: Readonly<Record<'read' | 'page' | 'lastId', ReadTally>>;

  constructor({ reads, writes, observer, feed, snapshot, search }: SqliteUserStoreOptions) {
    super();
    this.lists = sqliteUserLists(reads, snapshot, search);
    this.#snapshot = snapshot;
    this.#writes = writes;
    this.#feed = feed;
    this.#tallies = {
      read: observer.reads('user.read'),
      page: observer.reads('user.page'),
      lastId: observer.reads('user.lastId'),
    };
    this.#read = reads.prepare(`SELECT ${USER_JSON} AS json FROM users WHERE id = ?`);
    // The rows reach the aggregate in the order of the inner query.
    this.#page = reads.prepare(`
      SELECT count(*) AS count, max(id) AS lastId, group_concat(${USER_JSON}) AS json
      FROM (SELECT id, name, email FROM users WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)`);
    this.#lastId = reads.prepare('SELECT max(id) AS lastId FROM users');
  }

  readJson(id: number): string | undefined {
    this.#snapshot?.enter();
    const row = counted(this.#tallies.read, () => readRow<{ json: string }>(this.#read, id));
    return row?.json;
  }

  page(after: number, upTo: number, limit: number): UserPage {
    if (this.#snapshot === undefined) return this.#readPage(after, upTo, limit);
    this.#snapshot.enter();
    const version = this.#snapshot.version();
    return this.#pages.find(version, `${after} ${upTo} ${limit}`, () => this.#readPage(after, upTo, limit));
  }

  #readPage(after: number, upTo: number, limit: number): UserPage {
    const row = counted(this.#tallies.page, () =>
      readRow<{ count: number; lastId: number | null; json: string | null }>(this.#page, after, upTo, limit),
    );
    return { count: row?.count ?? 0, lastId: row?.lastId ?? after, json: row?.json ?? '' };
  }

  lastId(): number {
    this.#snapshot?.enter();
    return counted(this.#tallies.lastId, () => readRow<{ lastId: number | null }>(this.#lastId))?.lastId ?? 0;
  }

  async create({ name, email }: NewUser): Promise<number> {
    const [row] = await this.#writes.write('createUser', name, email);
    const id = Number(row?.[0]);
    this.#feed.publish({ id: String(id), name, email });
    return id;
  }

  update(id: number, { name, email }: NewUser): Promise<boolean> {
    return this.#changed('updateUser', name, email, id);
  }

  remove(id: number): Promise<boolean> {
    return this.#changed('removeUser', id);
  }

  async #changed(write: 'updateUser' | 'removeUser', ...values: readonly SQLInputValue[]): Promise<boolean> {
    const rows = await this.#writes.write(write, ...values);
    return rows.length > 0;
  }
}
