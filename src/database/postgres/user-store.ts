import { DatabaseUserStore, type UserPage } from '../../users/database-user-store.ts';
import type { NewUser } from '../../users/user.ts';
import type { BatchQueue } from '../batch-queue.ts';
import { counted, type DatabaseObserver, type ReadTally } from '../observer.ts';
import type { Row, Statement } from './pool/connection.ts';
import type { Server } from './pool/server.ts';
import type { UserReads } from './user-reads.ts';
import { CHECK_USERS } from './write-check.ts';
import { writeQueue } from './write-queue.ts';

/** A user as JSON text. */
// Concatenated, because json_build_object would put spaces between the parts.
export const USER_JSON = `'{"id":' || id || ',"name":' || to_json(name)::text || ',"email":' || to_json(email)::text || '}'`;

const READ = { name: 'user-read', text: `SELECT ${USER_JSON} FROM users WHERE id = $1` };
const PAGE = {
  name: 'user-page',
  text: `
    SELECT count(*), max(id), string_agg(${USER_JSON}, ',' ORDER BY id)
    FROM (SELECT id, name, email FROM users WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) AS page`,
};
const LAST_ID = { name: 'user-last-id', text: 'SELECT max(id) FROM users' };

const CREATE = {
  name: 'user-create',
  text: `
    INSERT INTO users (name, email)
    SELECT name, email FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (name, email, nth) ORDER BY nth
    RETURNING id`,
};
// Locks rows in the order of their ids, so that two updates at the same time cannot deadlock.
const UPDATE = {
  name: 'user-update',
  text: `
    WITH given AS (
      SELECT DISTINCT ON (id) id, name, email
      FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS given (id, name, email, nth)
      ORDER BY id, nth DESC),
    locked AS (SELECT id FROM users WHERE id = ANY ($1) ORDER BY id FOR UPDATE)
    UPDATE users SET name = given.name, email = given.email
    FROM given JOIN locked USING (id) WHERE users.id = given.id RETURNING users.id`,
};
const REMOVE = {
  name: 'user-remove',
  text: `
    WITH locked AS (SELECT id FROM users WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE)
    DELETE FROM users USING locked WHERE users.id = locked.id RETURNING users.id`,
};

/** A larger page is read on a connection of its own: other reads would wait behind it. */
const SHORT_PAGE = 1_000;
/** Batches of creates that run at the same time, each on a connection of its own. */
const CREATE_CONCURRENCY = 2;

type Update = NewUser & { readonly id: number };

/** What the store works on. */
export interface PostgresUserStoreOptions {
  readonly server: Server;
  readonly reads: UserReads;
  readonly observer: DatabaseObserver;
  /** Called when there may be new users. */
  onCreated(): void;
}

/** Users in PostgreSQL: reads share connections, writes of one kind are batched into one statement. */
export class PostgresUserStore extends DatabaseUserStore implements AsyncDisposable {
  readonly #server: Server;
  readonly #reads: UserReads;
  readonly #onCreated: () => void;
  /** `undefined` stores nothing. */
  readonly #creates: BatchQueue<NewUser | undefined, number>;
  readonly #updates: BatchQueue<Update, boolean>;
  readonly #removals: BatchQueue<number, boolean>;
  readonly #tallies: Readonly<Record<'read' | 'page' | 'lastId', ReadTally>>;

  constructor({ server, reads, observer, onCreated }: PostgresUserStoreOptions) {
    super();
    this.#server = server;
    this.#onCreated = onCreated;
    this.#reads = reads;
    this.#creates = writeQueue((users) => this.#create(users), { concurrency: CREATE_CONCURRENCY, observer });
    this.#updates = writeQueue((users) => this.#update(users), { observer });
    this.#removals = writeQueue((ids) => this.#remove(ids), { observer });
    this.#tallies = {
      read: observer.reads('user.read'),
      page: observer.reads('user.page'),
      lastId: observer.reads('user.lastId'),
    };
  }

  async readJson(id: number): Promise<string | undefined> {
    const [row] = await counted(this.#tallies.read, () => this.#reads.run(READ, [id]));
    return row?.[0] as string | undefined;
  }

  async page(after: number, upTo: number, limit: number): Promise<UserPage> {
    const values = [after, upTo, limit];
    const [row] = await counted(this.#tallies.page, () => this.#reads.run(PAGE, values, limit > SHORT_PAGE));
    const [count = 0, lastId, json] = (row ?? []) as [number?, (number | null)?, (string | null)?];
    return { count, lastId: lastId ?? after, json: json ?? '' };
  }

  async lastId(): Promise<number> {
    const [row] = await counted(this.#tallies.lastId, () => this.#reads.run(LAST_ID, []));
    return Number(row?.[0] ?? 0);
  }

  create(user: NewUser): Promise<number> {
    return this.#creates.submit(user);
  }

  update(id: number, user: NewUser): Promise<boolean> {
    return this.#updates.submit({ id, ...user });
  }

  remove(id: number): Promise<boolean> {
    return this.#removals.submit(id);
  }

  /** Commits nothing by the queue of the creates, so that it takes as long as a create would. */
  async commitNothing(): Promise<void> {
    await this.#creates.submit(undefined);
  }

  /** Waits for the accepted writes, then refuses later ones. */
  async [Symbol.asyncDispose](): Promise<void> {
    const queues = [this.#creates, this.#updates, this.#removals];
    await Promise.all(queues.map((queue) => queue[Symbol.asyncDispose]()));
  }

  async #write(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    try {
      return await this.#server.write(statement, values);
    } finally {
      this.#reads.wrote();
    }
  }

  async #create(users: readonly (NewUser | undefined)[]): Promise<readonly number[]> {
    const given = users.filter((user) => user !== undefined);
    if (given.length === 0) {
      await this.#server.write(CHECK_USERS, []);
      return users.map(() => 0);
    }
    const columns = [given.map(({ name }) => name), given.map(({ email }) => email)];
    // A batch that fails without an answer may be stored all the same.
    const rows = await this.#write(CREATE, columns).finally(this.#onCreated);
    // Ids grow in the order in which the users were given.
    const ids = rows.map(([id]) => Number(id)).sort((a, b) => a - b);
    let next = 0;
    return users.map((user) => (user === undefined ? 0 : (ids[next++] ?? 0)));
  }

  /** Of several updates of one user the last one counts. */
  async #update(users: readonly Update[]): Promise<readonly boolean[]> {
    const rows = await this.#write(UPDATE, [
      users.map(({ id }) => id),
      users.map(({ name }) => name),
      users.map(({ email }) => email),
    ]);
    const found = new Set(rows.map(([id]) => id));
    return users.map(({ id }) => found.has(id));
  }

  /** Of several removals of one user the first one did it. */
  async #remove(ids: readonly number[]): Promise<readonly boolean[]> {
    const rows = await this.#write(REMOVE, [ids]);
    const found = new Set(rows.map(([id]) => id));
    return ids.map((id) => found.delete(id));
  }
}
