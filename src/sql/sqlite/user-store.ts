import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { ImportCheckpoint, ImportPosition } from '../../relations/import.ts';
import { earlier, firstDuplicate, IMPORT_KEPT } from '../../relations/import.ts';
import { importInProgress } from '../../relations/import-readers.ts';
import type { UserLists } from '../../relations/lists.ts';
import { PAGE_BYTES, PageRows, type UserFormat, type UserPage } from '../../relations/lists.ts';
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
import { counted, type DatabaseObserver, type ReadTally } from '../batch-queue.ts';
import { storedKey } from '../inbox-sql.ts';
import { PageCache, pageKey } from '../page-cache.ts';
import type { Row, Step, StepRows } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { readRow } from './connection.ts';
import type { Reader } from './reader.ts';
import type { TickSnapshot } from './tick-snapshot.ts';
import { sqliteUserLists, USERS_STATE } from './user-lists.ts';

const USER_JSON = `json_object('id', id, 'name', name, 'email', email)`;
/** The text of a user in each format. */
const WRITTEN: Readonly<Record<UserFormat, string>> = {
  json: `',' || ${USER_JSON}`,
  ndjson: `${USER_JSON} || char(10)`,
  csv: `id || ',"' || replace(name, '"', '""') || '","' || replace(email, '"', '""') || '"' || char(13, 10)`,
};
/** Maximum number of users per read: this many of maximum size take 1.3 MB. */
const MAX_ROWS = 256;
/** A time that every version precedes. */
const NEVER = Number.MAX_SAFE_INTEGER;

interface SqliteUserStoreOptions {
  /** Reads users on the caller's thread. */
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  readonly observer: DatabaseObserver;
  /**
   * The snapshot of `reads`, if other connections write: reads share it, and pages are cached until the next
   * commit.
   */
  readonly snapshot: TickSnapshot | undefined;
  /** Runs long reads on a separate thread. */
  readonly reader: Reader | undefined;
  /** Which indexes the users have. */
  readonly search: SearchLevel;
  /** Called when a change of users is durable. */
  onChanged(): void;
}

interface PageRow {
  readonly count: number;
  readonly lastId: number | null;
  readonly text: string | null;
}

/** Users in SQLite: reads on the caller's thread, writes through the queue. */
export class SqliteUserStore extends DatabaseUserStore {
  readonly lists: UserLists;
  readonly #snapshot: TickSnapshot | undefined;
  readonly #pages = new PageCache<number>();
  readonly #rowsOfPage = new PageRows(MAX_ROWS);
  readonly #writes: WriteQueue;
  readonly #imports: SqliteUserImport;
  readonly #onChanged: () => void;
  readonly #read: StatementSync;
  readonly #page: Readonly<Record<UserFormat, StatementSync>>;
  readonly #lastId: StatementSync;
  readonly #state: StatementSync;
  /** Values read at a version of the database. */
  #knownState: { readonly version: number; readonly state: string } | undefined;
  #knownLastId: { readonly version: number; readonly lastId: number } | undefined;
  /** Idempotency keys of creates in progress; an SQLite file has only one service. */
  readonly #running = new Set<string>();
  readonly #tallies: Readonly<Record<'read' | 'page' | 'lastId', ReadTally>>;

  constructor({ reads, writes, observer, snapshot, reader, search, onChanged }: SqliteUserStoreOptions) {
    super();
    this.lists = sqliteUserLists({ reads, snapshot, reader, search });
    this.#snapshot = snapshot;
    this.#writes = writes;
    this.#onChanged = onChanged;
    this.#imports = new SqliteUserImport({ reads, writes, onWritten: onChanged });
    this.#tallies = {
      read: observer.reads('user.read'),
      page: observer.reads('user.page'),
      lastId: observer.reads('user.lastId'),
    };
    this.#read = reads.prepare(`SELECT ${USER_JSON} AS json, version FROM users WHERE id = ?`);
    // The aggregate receives the rows in the order of the inner query.
    const page = (format: UserFormat) =>
      reads.prepare(`
        SELECT count(*) AS count, max(id) AS lastId, group_concat(${WRITTEN[format]}, '') AS text
        FROM (SELECT id, name, email FROM users WHERE id > ? AND id <= ? ORDER BY id LIMIT ? + 0)`);
    this.#page = { json: page('json'), ndjson: page('ndjson'), csv: page('csv') };
    this.#state = reads.prepare(`SELECT ${USERS_STATE} AS state`);
    this.#lastId = reads.prepare('SELECT max(id) AS lastId FROM users');
  }

  read(id: number): VersionedUser | undefined {
    this.#snapshot?.enter();
    return counted(this.#tallies.read, () => readRow<VersionedUser>(this.#read, id));
  }

  state(): string {
    this.#snapshot?.enter();
    const version = this.#snapshot?.version();
    if (version !== undefined && version === this.#knownState?.version) return this.#knownState.state;
    const state = readRow<{ state: string }>(this.#state)?.state ?? '';
    if (version !== undefined) this.#knownState = { version, state };
    return state;
  }

  /** Uses the cache if no process has committed since the page was read. */
  page(format: UserFormat, after: number, upTo: number): UserPage {
    const snapshot = this.#snapshot;
    if (snapshot === undefined) return this.#readPage(format, after, upTo);
    const key = pageKey(format, after, upTo);
    snapshot.enter();
    const known = this.#pages.find(snapshot.version(), key);
    if (known !== undefined) return known;
    snapshot.hold();
    const page = this.#readPage(format, after, upTo);
    this.#pages.add(snapshot.version(), key, page);
    snapshot.giveWay();
    return page;
  }

  /** Reads a few users at a time until the page is full, in one snapshot. */
  #readPage(format: UserFormat, after: number, upTo: number): UserPage {
    return counted(this.#tallies.page, () => {
      const state = this.state();
      const texts: string[] = [];
      let [bytes, count, lastId, more] = [0, 0, after, true];
      while (more && bytes < PAGE_BYTES) {
        const limit = this.#rowsOfPage.rowsFor(bytes);
        const row = readRow<PageRow>(this.#page[format], lastId, upTo, limit);
        const text = row?.text ?? '';
        const found = row?.count ?? 0;
        const size = Buffer.byteLength(text);
        this.#rowsOfPage.read(size, found);
        if (found > 0) texts.push(text);
        bytes += size;
        count += found;
        lastId = row?.lastId ?? lastId;
        more = found === limit;
      }
      return { bytes: Buffer.from(texts.join('')), count, lastId, more, state };
    });
  }

  lastId(): number {
    this.#snapshot?.enter();
    const version = this.#snapshot?.version();
    if (version !== undefined && version === this.#knownLastId?.version) return this.#knownLastId.lastId;
    const row = counted(this.#tallies.lastId, () => readRow<{ lastId: number | null }>(this.#lastId));
    const lastId = row?.lastId ?? 0;
    if (version !== undefined) this.#knownLastId = { version, lastId };
    return lastId;
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

  async create({ name, email }: NewUser, version = Date.now()): Promise<number> {
    const [row] = await refusingTaken(this.#writes.write('createUser', name, email, version));
    this.#onChanged();
    return Number(row?.[0]);
  }

  async createOnce(
    { name, email }: NewUser,
    { key, fingerprint, keptFor }: IdempotencyKey,
  ): Promise<IdempotentOutcome> {
    if (this.#running.has(key)) return { is: 'running' };
    this.#running.add(key);
    try {
      const stored = storedKey(key);
      const now = Date.now();
      const [, created = [], , [kept = []] = []] = await refusingTaken(
        this.#writes.submit([
          { statement: 'claimKey', values: [stored, fingerprint, now, now + keptFor] },
          { statement: 'createForKey', values: [name, email, now] },
          { statement: 'noteForKey', values: [stored] },
          { statement: 'readKey', values: [stored] },
          { statement: 'expireKeys', values: [now] },
        ]),
      );
      const [before, id, version] = kept;
      if (before !== fingerprint) return { is: 'reused' };
      if (created.length > 0) this.#onChanged();
      return { is: 'created', id: Number(id), version: Number(version) };
    } finally {
      this.#running.delete(key);
    }
  }

  update(id: number, { name, email }: NewUser): Promise<boolean> {
    return this.#changed('updateUser', name, email, id, Date.now());
  }

  remove(id: number): Promise<boolean> {
    return this.#changed('removeUser', id);
  }

  change(id: number, { name, email, condition }: UserChange): Promise<ChangeOutcome> {
    const values = [name ?? null, email ?? null, id, Date.now(), ...conditionValues(condition)];
    return this.#conditional('changeUser', id, values, ([version, json]) => ({
      is: 'changed',
      version: Number(version),
      json: String(json),
    }));
  }

  removeIf(id: number, condition: WriteCondition): Promise<ChangeOutcome> {
    return this.#conditional('removeUserIf', id, [id, ...conditionValues(condition)], () => ({
      is: 'removed',
    }));
  }

  /** Runs a conditional write; if it affects no row, finds out why in the same commit. */
  async #conditional(
    statement: 'changeUser' | 'removeUserIf',
    id: number,
    values: readonly SQLInputValue[],
    outcome: (row: Row) => ChangeOutcome,
  ): Promise<ChangeOutcome> {
    const [[row] = [], [found] = []] = await refusingTaken(
      this.#writes.submit([
        { statement, values },
        { statement: 'findUser', values: [id] },
      ]),
    );
    if (row !== undefined) {
      this.#onChanged();
      return outcome(row);
    }
    return { is: found === undefined ? 'missing' : 'refused' };
  }

  async #changed(write: 'updateUser' | 'removeUser', ...values: readonly SQLInputValue[]): Promise<boolean> {
    const rows = await refusingTaken(this.#writes.write(write, ...values));
    if (rows.length === 0) return false;
    this.#onChanged();
    return true;
  }
}

function conditionValues({ versions, before }: WriteCondition): readonly SQLInputValue[] {
  return [versions === undefined ? null : JSON.stringify(versions), before ?? NEVER];
}

/** Awaits a write; converts the error of a duplicate email. */
function refusingTaken<T>(write: Promise<T>): Promise<T> {
  return write.catch((error: Error) => {
    // The writer thread passes on the text of SQLite's error.
    throw error.message.includes('UNIQUE constraint failed: users.email') ? emailTaken() : error;
  });
}

/** The dependencies of imports. */
interface SqliteImportOptions {
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  /** Called after each write that stored users. */
  onWritten(): void;
}

/** The writes of imports to an SQLite database. */
class SqliteUserImport {
  readonly #options: SqliteImportOptions;
  /**
   * The last submitted batch: batches of all imports run one after another, so that a commit contains at most
   * one.
   */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: SqliteImportOptions) {
    this.#options = options;
  }

  async store(
    users: readonly NewUser[],
    checkpoint: ImportCheckpoint | undefined,
  ): Promise<readonly (number | undefined)[]> {
    const rows = await this.#submit(users, 'importUser', checkpoint);
    return rows.map(([row]) => (row === undefined ? undefined : Number(row[0])));
  }

  async storeAll(users: readonly NewUser[], checkpoint: ImportCheckpoint | undefined): Promise<WholeImport> {
    try {
      const rows = await this.#submit(users, 'createUser', checkpoint);
      return { ids: rows.map(([row]) => Number(row?.[0])) };
    } catch (error) {
      if (!String(error).includes('UNIQUE constraint failed: users.email')) throw error;
      return { taken: this.#firstTaken(users) ?? 0 };
    }
  }

  async begin(key: string): Promise<ImportPosition> {
    const { reads, writes } = this.#options;
    const now = Date.now();
    await writes.submit([
      { statement: 'expireImports', values: [now - IMPORT_KEPT] },
      { statement: 'beginImport', values: [storedKey(key), now] },
    ]);
    const statement = reads.prepare('SELECT line, digest FROM imports WHERE key = ?');
    const row = readRow<{ line: number; digest: string | null }>(statement, storedKey(key));
    return { line: row?.line ?? 0, digest: row?.digest ?? undefined };
  }

  /** Writes users in one commit; resolves to the rows of each user. */
  async #submit(
    users: readonly NewUser[],
    statement: 'importUser' | 'createUser',
    checkpoint: ImportCheckpoint | undefined,
  ): Promise<StepRows> {
    const version = Date.now();
    const steps: Step[] = users.map(({ name, email }) => ({ statement, values: [name, email, version] }));
    if (checkpoint === undefined) return this.#inTurn(steps);
    const values = [storedKey(checkpoint.key), checkpoint.from, checkpoint.to, version, checkpoint.digest];
    const [, ...rows] = await this.#inTurn([{ statement: 'moveImport', values }, ...steps]);
    return rows;
  }

  async #inTurn(steps: readonly Step[]): Promise<StepRows> {
    const { writes, onWritten } = this.#options;
    const write = this.#last.then(() => writes.submit(steps));
    this.#last = write.then(onWritten, () => {});
    return write.catch((error: unknown) => {
      throw String(error).includes('NOT NULL constraint failed: imports.line') ? importInProgress() : error;
    });
  }

  #firstTaken(users: readonly NewUser[]): number | undefined {
    const statement = this.#options.reads.prepare(`
      SELECT min(key) AS nth FROM json_each(?) AS given
      WHERE EXISTS (SELECT 1 FROM users WHERE users.email = given.value COLLATE NOCASE)`);
    const emails = JSON.stringify(users.map(({ email }) => email));
    const stored = readRow<{ nth: number | null }>(statement, emails)?.nth ?? undefined;
    return earlier(stored, firstDuplicate(users));
  }
}
