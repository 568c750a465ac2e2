import type { ImportCheckpoint } from '../../relations/import.ts';
import {
  PAGE_BYTES,
  PageRows,
  type UserFormat,
  type UserLists,
  type UserPage,
} from '../../relations/lists.ts';
import type { NewUser, SearchLevel, VersionedUser } from '../../relations/user.ts';
import { type BatchQueue, counted, type DatabaseObserver, type ReadTally } from '../batch-queue.ts';
import { PageCache, pageKey } from '../page-cache.ts';
import type { Row, Statement, Steps } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { POSTGRES, type Query } from '../stores/sql.ts';
import { imports, refusingTaken, StoredUsers } from '../stores/stored-users.ts';
import { USER_QUERIES, usersState, userTexts } from '../stores/user-queries.ts';
import { postgresLists, userLists } from '../user-lists.ts';
import { type PostgresSql, postgresSql } from './sql.ts';
import type { UserReads } from './user-reads.ts';
import { CHECK_USERS, singleWrite, writeQueue } from './write-queue.ts';

/** Maximum number of users that the server examines for a page. */
const MAX_ROWS = 1_000;
/** Number of users to count per statement. */
const SLICE = 200_000;
/** Maximum number of concurrent batches of creates, each on its own connection. */
const CREATE_CONCURRENCY = 2;

type Create = NewUser & { readonly version: number };
type Update = NewUser & { readonly id: number };

/** The dependencies of the store. */
interface PostgresUserStoreOptions {
  readonly server: Server;
  readonly reads: UserReads;
  readonly observer: DatabaseObserver;
  /** Which indexes the users have. */
  readonly search: SearchLevel;
  /** Called when users may have changed. */
  onChanged(): void;
}

/** Users in PostgreSQL: reads share connections, writes of one kind are batched into one statement. */
export class PostgresUserStore extends StoredUsers implements AsyncDisposable {
  readonly lists: UserLists;
  readonly #server: Server;
  readonly #reads: UserReads;
  readonly #onWritten: () => void;
  readonly #sql: PostgresSql;
  readonly #observer: DatabaseObserver;
  /** `undefined` stores nothing; used by `commitNothing`. */
  readonly #creates: BatchQueue<Create | undefined, number>;
  readonly #updates: BatchQueue<Update, boolean>;
  readonly #removals: BatchQueue<number, boolean>;
  readonly #tallies: Readonly<Record<'read' | 'page' | 'lastId', ReadTally>>;
  readonly #pages = new PageCache<string>();
  readonly #rowsOfPage = new PageRows(MAX_ROWS);
  /** The read of the state in progress, and the one after it. */
  #readingState: Promise<string> | undefined;
  #nextState: Promise<string> | undefined;

  constructor({ server, reads, observer, search, onChanged }: PostgresUserStoreOptions) {
    const onWritten = () => {
      reads.wrote();
      onChanged();
    };
    const sql = postgresSql(server, observer, { onWritten });
    super(sql);
    this.lists = userLists({
      dialect: postgresLists,
      search,
      slice: SLICE,
      sql: postgresSql(server, observer, { reads }),
    });
    this.#server = server;
    this.#onWritten = onWritten;
    this.#reads = reads;
    this.#sql = sql;
    this.#observer = observer;
    const { maxWait } = server;
    this.#creates = writeQueue((users) => this.#create(users), {
      concurrency: CREATE_CONCURRENCY,
      observer,
      maxWait,
    });
    this.#updates = writeQueue((users) => this.#update(users), { observer, maxWait });
    this.#removals = writeQueue((ids) => this.#remove(ids), { observer, maxWait });
    this.#tallies = {
      read: observer.reads('user.read'),
      page: observer.reads('user.page'),
      lastId: observer.reads('user.lastId'),
    };
  }

  async read(id: number): Promise<VersionedUser | undefined> {
    const [row] = await counted(this.#tallies.read, () => this.#reads.run(READ, [id]));
    return row && { json: String(row[0]), version: Number(row[1]) };
  }

  /** Callers during a read share the next one, which starts after they asked. */
  state(): Promise<string> {
    this.#nextState ??= Promise.resolve(this.#readingState)
      .catch(() => {})
      .then(() => {
        this.#nextState = undefined;
        this.#readingState = this.#readState();
        return this.#readingState;
      });
    return this.#nextState;
  }

  async #readState(): Promise<string> {
    const [row] = await this.#reads.run(STATE, []);
    return String(row?.[0]);
  }

  /** If the page is cached, only the state of all users is read, which shows whether any user has changed. */
  async page(format: UserFormat, after: number, upTo: number): Promise<UserPage> {
    const key = pageKey(format, after, upTo);
    const known = this.#pages.has(key) ? this.#pages.find(await this.state(), key) : undefined;
    if (known !== undefined) return known;
    const limit = this.#rowsOfPage.rowsFor(0);
    const [row] = await counted(this.#tallies.page, () =>
      this.#reads.run(PAGE[format], [after, upTo, limit]),
    );
    const [count = 0, lastId, text, state = '', looked = 0] = (row ?? []) as [
      number?,
      (number | null)?,
      (string | null)?,
      string?,
      number?,
    ];
    const bytes = Buffer.from(text ?? '');
    this.#rowsOfPage.read(bytes.length, count);
    const more = count < looked || looked === limit;
    const page = { bytes, count, lastId: lastId ?? after, more, state };
    this.#pages.add(state, key, page);
    return page;
  }

  async lastId(): Promise<number> {
    const [row] = await counted(this.#tallies.lastId, () => this.#reads.run(LAST_ID, []));
    return Number(row?.[0] ?? 0);
  }

  async importUsers(
    users: readonly NewUser[],
    checkpoint?: ImportCheckpoint,
  ): Promise<readonly (number | undefined)[]> {
    const values = [users.map(({ name }) => name), users.map(({ email }) => email), Date.now()];
    const [[ids] = []] = await this.#import([IMPORT, values], checkpoint);
    if (typeof ids !== 'string') return [];
    return ids.split(',').map((id) => (id === '' ? undefined : Number(id)));
  }

  protected override async createAll(
    users: readonly NewUser[],
    checkpoint: ImportCheckpoint | undefined,
  ): Promise<readonly number[]> {
    const version = Date.now();
    const columns = columnsOf(users.map((user) => ({ ...user, version })));
    return idsInOrder(await this.#import([CREATE, columns], checkpoint));
  }

  /** Runs a statement, in one transaction with the move of the import. */
  #import(step: Steps[number], checkpoint: ImportCheckpoint | undefined): Promise<readonly Row[]> {
    if (checkpoint === undefined) return singleWrite(this.#observer, () => this.#write(...step));
    return imports.refusingMoved(this.#sql.writeWith(imports.move(checkpoint), step));
  }

  create({ name, email }: NewUser, version = Date.now()): Promise<number> {
    return refusingTaken(this.#creates.submit({ name, email, version }));
  }

  override update(id: number, user: NewUser): Promise<boolean> {
    return refusingTaken(this.#updates.submit({ id, ...user }));
  }

  override remove(id: number): Promise<boolean> {
    return this.refusingReferenced(id, this.#removals.submit(id));
  }

  /** Makes an empty commit through the queue of creates, as slow as a create. */
  async commitNothing(): Promise<void> {
    await this.#creates.submit(undefined);
  }

  /** How long a write has been waiting, in milliseconds. */
  get writeDelay(): number {
    return Math.max(this.#creates.delay, this.#updates.delay, this.#removals.delay);
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
      // A write that fails without an answer may still have been stored.
      this.#onWritten();
    }
  }

  async #create(users: readonly (Create | undefined)[]): Promise<readonly number[]> {
    const given = users.filter((user) => user !== undefined);
    if (given.length === 0) {
      await this.#server.write(CHECK_USERS, []);
      return users.map(() => 0);
    }
    const ids = idsInOrder(await this.#write(CREATE, columnsOf(given)));
    let next = 0;
    return users.map((user) => (user === undefined ? 0 : (ids[next++] ?? 0)));
  }

  /** If a user is updated several times, the last update wins. */
  async #update(users: readonly Update[]): Promise<readonly boolean[]> {
    const rows = await this.#write(UPDATE, [
      users.map(({ id }) => id),
      users.map(({ name }) => name),
      users.map(({ email }) => email),
    ]);
    const found = new Set(rows.map(([id]) => id));
    return users.map(({ id }) => found.has(id));
  }

  /** If a user is removed several times, the first removal succeeds. */
  async #remove(ids: readonly number[]): Promise<readonly boolean[]> {
    const rows = await this.#write(REMOVE, [ids]);
    const found = new Set(rows.map(([id]) => id));
    return ids.map((id) => found.delete(id));
  }
}

function columnsOf(users: readonly Create[]): readonly unknown[] {
  return [
    users.map(({ name }) => name),
    users.map(({ email }) => email),
    users.map(({ version }) => version),
  ];
}

/** The ids of created users, which increase in the order in which the users were given. */
function idsInOrder(rows: readonly Row[]): readonly number[] {
  return rows.map(([id]) => Number(id)).sort((a, b) => a - b);
}

const USER_JSON = POSTGRES.userJson;

const READ = { name: 'user-read', text: `SELECT ${USER_JSON}, version FROM users WHERE id = $1` };
/** The users of a page and the number of examined rows, which include users that exceed its bytes. */
const pageAs = (format: UserFormat) => ({
  name: `user-page-${format}`,
  text: `
    SELECT count(*) FILTER (WHERE before < ${PAGE_BYTES}), max(id) FILTER (WHERE before < ${PAGE_BYTES}),
      string_agg(text, '' ORDER BY id) FILTER (WHERE before < ${PAGE_BYTES}),
      ${usersState(POSTGRES)}, count(*)
    FROM (
      SELECT id, text, coalesce(sum(octet_length(text)) OVER behind, 0) AS before
      FROM (
        SELECT id, ${userTexts(POSTGRES)[format]} AS text FROM users WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) AS written
      WINDOW behind AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS page`,
});
const PAGE = { json: pageAs('json'), ndjson: pageAs('ndjson'), csv: pageAs('csv') };
const statementOf = ({ name, postgres }: Query): Statement => ({ name, text: postgres });
const STATE = statementOf(USER_QUERIES.state);
const LAST_ID = statementOf(USER_QUERIES.lastId);

// Locks rows in the order of their ids, so that concurrent updates cannot deadlock.
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

const CREATE = {
  name: 'user-create',
  text: `
    INSERT INTO users (name, email, version)
    SELECT name, email, version
    FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (name, email, version, nth) ORDER BY nth
    RETURNING id`,
};

/**
 * Stores users in order and returns their ids, separated by commas; empty for users whose email is already
 * taken.
 */
const IMPORT = {
  name: 'user-import',
  text: `
    WITH given AS MATERIALIZED (
      SELECT nth, nextval('users_id_seq') AS id, name, email
      FROM (SELECT * FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (name, email, nth) ORDER BY nth) AS given),
    stored AS (
      INSERT INTO users (id, name, email, version) OVERRIDING SYSTEM VALUE
      SELECT id, name, email, $3::bigint FROM given ORDER BY nth
      ON CONFLICT DO NOTHING RETURNING id)
    SELECT string_agg(coalesce(stored.id::text, ''), ',' ORDER BY nth) FROM given LEFT JOIN stored USING (id)`,
};
