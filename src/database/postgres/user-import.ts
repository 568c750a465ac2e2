import type { WholeImport } from '../../users/database-user-store.ts';
import { IMPORT_KEPT } from '../../users/import/import-batch.ts';
import { importInProgress } from '../../users/import/import-error.ts';
import {
  type ImportMark,
  type ImportPosition,
  recordedPosition,
  writtenDigest,
} from '../../users/import/import-position.ts';
import type { NewUser } from '../../users/user.ts';
import { earlier, firstDuplicate } from '../first-duplicate.ts';
import type { DatabaseObserver } from '../observer.ts';
import { storedKey } from '../stored-key.ts';
import { BEGIN_IMPORT, EXPIRE_IMPORTS, FIRST_TAKEN, IMPORT, MOVE_IMPORT } from './import-statements.ts';
import type { Row, Steps } from './pool/connection.ts';
import type { Server } from './pool/server.ts';
import { CREATE } from './user-statements.ts';
import { singleWrite } from './write-queue.ts';

/** What imports work on. */
export interface PostgresImportOptions {
  readonly server: Server;
  readonly observer: DatabaseObserver;
  /** Called after each write, whatever became of it. */
  onWritten(): void;
}

/** The writes of imports to a PostgreSQL database. */
export class PostgresUserImport {
  readonly #options: PostgresImportOptions;

  constructor(options: PostgresImportOptions) {
    this.#options = options;
  }

  async store(
    users: readonly NewUser[],
    mark: ImportMark | undefined,
  ): Promise<readonly (number | undefined)[]> {
    const values = [users.map(({ name }) => name), users.map(({ email }) => email), Date.now()];
    const [[ids] = []] = await this.#write([...movedBy(mark), [IMPORT, values]]);
    if (typeof ids !== 'string') return [];
    return ids.split(',').map((id) => (id === '' ? undefined : Number(id)));
  }

  async storeAll(users: readonly NewUser[], mark: ImportMark | undefined): Promise<WholeImport> {
    const version = Date.now();
    const columns = [
      users.map(({ name }) => name),
      users.map(({ email }) => email),
      users.map(() => version),
    ];
    try {
      const rows = await this.#write([...movedBy(mark), [CREATE, columns]]);
      // Ids grow in the order in which the users were given.
      return { ids: rows.map(([id]) => Number(id)).sort((a, b) => a - b) };
    } catch (error) {
      if (constraintOf(error) !== 'users_email_unique') throw error;
      const [[nth] = []] = await this.#options.server.readAlone(FIRST_TAKEN, [columns[1]]);
      const stored = typeof nth === 'number' ? nth - 1 : undefined;
      return { taken: earlier(stored, firstDuplicate(users)) ?? 0 };
    }
  }

  async begin(key: string): Promise<ImportPosition> {
    const now = Date.now();
    const [row] = await this.#write([
      [EXPIRE_IMPORTS, [now - IMPORT_KEPT]],
      [BEGIN_IMPORT, [storedKey(key), now]],
    ]);
    const [line = 0, digest = null] = row ?? [];
    return recordedPosition(Number(line), digest === null ? null : String(digest));
  }

  /** Runs statements in one transaction; resolves to the rows of the last one. */
  async #write(steps: Steps): Promise<readonly Row[]> {
    const { server, observer, onWritten } = this.#options;
    const [only, ...others] = steps;
    try {
      return await singleWrite(observer, async () => {
        if (only !== undefined && others.length === 0) return server.write(...only);
        const rows = await server.transaction(steps);
        return rows.at(-1) ?? [];
      });
    } catch (error) {
      throw columnOf(error) === 'line' ? importInProgress() : error;
    } finally {
      onWritten();
    }
  }
}

function movedBy(mark: ImportMark | undefined): Steps {
  if (mark === undefined) return [];
  return [[MOVE_IMPORT, [storedKey(mark.key), mark.from, mark.to, Date.now(), writtenDigest(mark)]]];
}

function constraintOf(error: unknown): unknown {
  return causeOf(error).constraint;
}

/** The column that took no NULL. */
function columnOf(error: unknown): unknown {
  return causeOf(error).column;
}

function causeOf(error: unknown): { readonly constraint?: unknown; readonly column?: unknown } {
  return Object(Object(error).cause);
}
