import type { DatabaseSync } from 'node:sqlite';
import { earlier, firstDuplicate, IMPORT_KEPT } from '../../relations/import.ts';
import type { ImportCheckpoint, ImportPosition } from '../../relations/import-position.ts';
import { importInProgress } from '../../relations/import-readers.ts';
import type { NewUser } from '../../relations/user.ts';
import type { WholeImport } from '../../relations/user-stores.ts';
import { storedKey } from '../inbox-sql.ts';
import type { Step, StepRows } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { readRow } from './connection.ts';

/** The dependencies of imports. */
interface SqliteImportOptions {
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  /** Called after each write that stored users. */
  onWritten(): void;
}

/** The writes of imports to an SQLite database. */
export class SqliteUserImport {
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
