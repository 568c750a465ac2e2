import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ImportCheckpoint } from '../../relations/import.ts';
import type { UserLists } from '../../relations/lists.ts';
import { PAGE_BYTES, PageRows, type UserFormat, type UserPage } from '../../relations/lists.ts';
import type { NewUser, SearchLevel, VersionedUser } from '../../relations/user.ts';
import { counted, type DatabaseObserver, type ReadTally } from '../batch-queue.ts';
import { PageCache, pageKey } from '../page-cache.ts';
import type { Step, StepRows } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { SQLITE } from '../stores/sql.ts';
import { imports, refusingTaken, StoredUsers } from '../stores/stored-users.ts';
import { USER_QUERIES, userTexts } from '../stores/user-queries.ts';
import { sqliteLists, userLists } from '../user-lists.ts';
import { readRow } from './connection.ts';
import type { Reader } from './reader.ts';
import { sqliteSql, writeStep } from './sql.ts';
import type { TickSnapshot } from './tick-snapshot.ts';

/** Larger pages of lists are read by the reader thread: this many users of maximum size take 500 KB. */
const LARGE_PAGE = 100;
/** Number of users to count per step; other reads wait meanwhile. */
const SLICE = 10_000;
/** Maximum number of users per read: this many of maximum size take 1.3 MB. */
const MAX_ROWS = 256;

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
export class SqliteUserStore extends StoredUsers {
  readonly lists: UserLists;
  readonly #snapshot: TickSnapshot | undefined;
  readonly #pages = new PageCache<number>();
  readonly #rowsOfPage = new PageRows(MAX_ROWS);
  readonly #writes: WriteQueue;
  /**
   * The last submitted batch of an import: batches of all imports run one after another, so that a commit
   * contains at most one.
   */
  #lastImport: Promise<unknown> = Promise.resolve();
  readonly #onChanged: () => void;
  readonly #read: StatementSync;
  readonly #page: Readonly<Record<UserFormat, StatementSync>>;
  readonly #lastId: StatementSync;
  readonly #state: StatementSync;
  /** Values read at a version of the database. */
  #knownState: { readonly version: number; readonly state: string } | undefined;
  #knownLastId: { readonly version: number; readonly lastId: number } | undefined;
  readonly #tallies: Readonly<Record<'read' | 'page' | 'lastId', ReadTally>>;

  constructor({ reads, writes, observer, snapshot, reader, search, onChanged }: SqliteUserStoreOptions) {
    const sql = sqliteSql({ reads, writes, reader, snapshot });
    super(sql, onChanged);
    this.lists = userLists({
      dialect: sqliteLists,
      search,
      slice: SLICE,
      sql,
      page({ isLong, ...asked }, { limit, backwards }) {
        const isLarge = isLong || limit > LARGE_PAGE;
        if (isLarge && reader !== undefined) return reader.page(asked, limit, backwards);
        return undefined;
      },
    });
    this.#snapshot = snapshot;
    this.#writes = writes;
    this.#onChanged = onChanged;
    this.#tallies = {
      read: observer.reads('user.read'),
      page: observer.reads('user.page'),
      lastId: observer.reads('user.lastId'),
    };
    this.#read = reads.prepare(`SELECT ${SQLITE.userJson} AS json, version FROM users WHERE id = ?`);
    // The aggregate receives the rows in the order of the inner query.
    const texts = userTexts(SQLITE);
    const page = (format: UserFormat) =>
      reads.prepare(`
        SELECT count(*) AS count, max(id) AS lastId, group_concat(${texts[format]}, '') AS text
        FROM (SELECT id, name, email FROM users WHERE id > ? AND id <= ? ORDER BY id LIMIT ? + 0)`);
    this.#page = { json: page('json'), ndjson: page('ndjson'), csv: page('csv') };
    this.#state = reads.prepare(USER_QUERIES.state.sqlite);
    this.#lastId = reads.prepare(USER_QUERIES.lastId.sqlite);
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
    const row = counted(this.#tallies.lastId, () => readRow<{ id: number }>(this.#lastId));
    const lastId = row?.id ?? 0;
    if (version !== undefined) this.#knownLastId = { version, lastId };
    return lastId;
  }

  async importUsers(
    users: readonly NewUser[],
    checkpoint?: ImportCheckpoint,
  ): Promise<readonly (number | undefined)[]> {
    const rows = await this.#import(users, 'importUser', checkpoint);
    return rows.map(([row]) => (row === undefined ? undefined : Number(row[0])));
  }

  protected override async createAll(
    users: readonly NewUser[],
    checkpoint: ImportCheckpoint | undefined,
  ): Promise<readonly number[]> {
    const rows = await this.#import(users, 'createUser', checkpoint);
    return rows.map(([row]) => Number(row?.[0]));
  }

  /** Writes users in one commit; resolves to the rows of each user. */
  async #import(
    users: readonly NewUser[],
    statement: 'importUser' | 'createUser',
    checkpoint: ImportCheckpoint | undefined,
  ): Promise<StepRows> {
    const version = Date.now();
    const steps: Step[] = users.map(({ name, email }) => ({ statement, values: [name, email, version] }));
    if (checkpoint === undefined) return this.#inTurn(steps);
    const [, ...rows] = await imports.refusingMoved(
      this.#inTurn([writeStep(imports.move(checkpoint)), ...steps]),
    );
    return rows;
  }

  #inTurn(steps: readonly Step[]): Promise<StepRows> {
    const write = this.#lastImport.then(() => this.#writes.submit(steps));
    this.#lastImport = write.then(this.#onChanged, () => {});
    return write;
  }

  async create({ name, email }: NewUser, version = Date.now()): Promise<number> {
    const [row] = await refusingTaken(this.#writes.write('createUser', name, email, version));
    this.#onChanged();
    return Number(row?.[0]);
  }
}
