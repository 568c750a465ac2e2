import type { ImportCheckpoint, ImportPosition } from '../../relations/import-position.ts';
import type { UserLists } from '../../relations/lists.ts';
import { PageRows, type UserFormat, type UserPage } from '../../relations/pages.ts';
import {
  type ChangeOutcome,
  emailTaken,
  type IdempotencyKey,
  type IdempotentOutcome,
  type NewUser,
  type SearchLevel,
  type UserChange,
  type VersionedUser,
  type WriteCondition,
} from '../../relations/user.ts';
import { DatabaseUserStore, type WholeImport } from '../../relations/user-stores.ts';
import type { BatchQueue } from '../batch-queue.ts';
import { counted, type DatabaseObserver, type ReadTally } from '../batch-queue.ts';
import { storedKey } from '../inbox-sql.ts';
import { PageCache, pageKey } from '../page-cache.ts';
import type { Row, Statement } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { PostgresUserImport } from './user-import.ts';
import { postgresUserLists } from './user-lists.ts';
import type { UserReads } from './user-reads.ts';
import {
  CHANGE,
  CREATE,
  CREATE_ONCE,
  EXPIRE_KEYS,
  LAST_ID,
  PAGE,
  READ,
  READ_KEY,
  REMOVE,
  REMOVE_IF,
  STATE,
  UPDATE,
} from './user-statements.ts';
import { CHECK_USERS, singleWrite, writeQueue } from './write-queue.ts';

/** Maximum number of users that the server examines for a page. */
const MAX_ROWS = 1_000;
/** A time that every version precedes. */
const NEVER = Number.MAX_SAFE_INTEGER;
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
export class PostgresUserStore extends DatabaseUserStore implements AsyncDisposable {
  readonly lists: UserLists;
  readonly #server: Server;
  readonly #reads: UserReads;
  readonly #onChanged: () => void;
  readonly #observer: DatabaseObserver;
  readonly #imports: PostgresUserImport;
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
    super();
    this.lists = postgresUserLists(reads, search);
    this.#server = server;
    this.#onChanged = onChanged;
    this.#observer = observer;
    this.#reads = reads;
    const onWritten = () => {
      reads.wrote();
      onChanged();
    };
    this.#imports = new PostgresUserImport({ server, observer, onWritten });
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

  importUsers(
    users: readonly NewUser[],
    checkpoint?: ImportCheckpoint,
  ): Promise<readonly (number | undefined)[]> {
    return this.#imports.store(users, checkpoint);
  }

  importAll(users: readonly NewUser[], checkpoint?: ImportCheckpoint): Promise<WholeImport> {
    return this.#imports.storeAll(users, checkpoint);
  }

  beginImport(key: string): Promise<ImportPosition> {
    return this.#imports.begin(key);
  }

  create({ name, email }: NewUser, version = Date.now()): Promise<number> {
    return refusingTaken(this.#creates.submit({ name, email, version }));
  }

  createOnce(
    { name, email }: NewUser,
    { key, fingerprint, keptFor }: IdempotencyKey,
  ): Promise<IdempotentOutcome> {
    return refusingTaken(
      singleWrite(this.#observer, async () => {
        const stored = storedKey(key);
        const now = Date.now();
        const values = [stored, fingerprint, now, now + keptFor, name, email];
        const [[isFree, id, version] = []] = await this.#write(CREATE_ONCE, values);
        if (isFree !== true) return { is: 'running' };
        if (typeof id === 'number') {
          // Keys that it leaves are removed by a later create.
          this.#server.write(EXPIRE_KEYS, [now]).catch(() => {});
          return { is: 'created', id, version: Number(version) };
        }
        const [kept = []] = await this.#server.read(READ_KEY, [stored]);
        if (kept[0] !== fingerprint) return { is: 'reused' };
        return { is: 'created', id: Number(kept[1]), version: Number(kept[2]) };
      }),
    );
  }

  update(id: number, user: NewUser): Promise<boolean> {
    return refusingTaken(this.#updates.submit({ id, ...user }));
  }

  remove(id: number): Promise<boolean> {
    return this.#removals.submit(id);
  }

  change(id: number, { name, email, condition }: UserChange): Promise<ChangeOutcome> {
    const values = [...conditionValues(id, condition), name ?? null, email ?? null];
    return this.#conditional(CHANGE, id, values, ([version, json]) => ({
      is: 'changed',
      version: Number(version),
      json: String(json),
    }));
  }

  removeIf(id: number, condition: WriteCondition): Promise<ChangeOutcome> {
    return this.#conditional(REMOVE_IF, id, conditionValues(id, condition), () => ({ is: 'removed' }));
  }

  /** Runs a conditional write; if it affects no row, reads the primary to find out why. */
  #conditional(
    statement: Statement,
    id: number,
    values: readonly unknown[],
    outcome: (row: Row) => ChangeOutcome,
  ): Promise<ChangeOutcome> {
    return refusingTaken(
      singleWrite(this.#observer, async () => {
        const [row] = await this.#write(statement, values);
        if (row !== undefined) return outcome(row);
        const found = await this.#server.read(READ, [id]);
        return { is: found.length === 0 ? 'missing' : 'refused' };
      }),
    );
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
      this.#reads.wrote();
      this.#onChanged();
    }
  }

  async #create(users: readonly (Create | undefined)[]): Promise<readonly number[]> {
    const given = users.filter((user) => user !== undefined);
    if (given.length === 0) {
      await this.#server.write(CHECK_USERS, []);
      return users.map(() => 0);
    }
    const columns = [
      given.map(({ name }) => name),
      given.map(({ email }) => email),
      given.map(({ version }) => version),
    ];
    const rows = await this.#write(CREATE, columns);
    // Ids increase in the order in which the users were given.
    const ids = rows.map(([id]) => Number(id)).sort((a, b) => a - b);
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

function conditionValues(id: number, { versions, before }: WriteCondition): readonly unknown[] {
  return [id, versions ?? null, before ?? NEVER];
}

/** Awaits a write; converts the error of a duplicate email. */
function refusingTaken<T>(write: Promise<T>): Promise<T> {
  return write.catch((error: Error) => {
    const { constraint } = Object(error.cause) as { readonly constraint?: unknown };
    throw constraint === 'users_email_unique' ? emailTaken() : error;
  });
}
