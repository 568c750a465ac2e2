import type { ImportCheckpoint, ImportPosition } from '../../relations/import.ts';
import { earlier, firstDuplicate, IMPORT_KEPT } from '../../relations/import.ts';
import { importInProgress } from '../../relations/import-readers.ts';
import type { NewUser } from '../../relations/user.ts';
import type { WholeImport } from '../../relations/user-stores.ts';
import type { DatabaseObserver } from '../batch-queue.ts';
import { storedKey } from '../inbox-sql.ts';
import type { Row, Steps } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { singleWrite } from './write-queue.ts';

export const CREATE = {
  name: 'user-create',
  text: `
    INSERT INTO users (name, email, version)
    SELECT name, email, version
    FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (name, email, version, nth) ORDER BY nth
    RETURNING id`,
};

/** The dependencies of imports. */
interface PostgresImportOptions {
  readonly server: Server;
  readonly observer: DatabaseObserver;
  /** Called after each write, successful or not. */
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
    checkpoint: ImportCheckpoint | undefined,
  ): Promise<readonly (number | undefined)[]> {
    const values = [users.map(({ name }) => name), users.map(({ email }) => email), Date.now()];
    const [[ids] = []] = await this.#write([...movedBy(checkpoint), [IMPORT, values]]);
    if (typeof ids !== 'string') return [];
    return ids.split(',').map((id) => (id === '' ? undefined : Number(id)));
  }

  async storeAll(users: readonly NewUser[], checkpoint: ImportCheckpoint | undefined): Promise<WholeImport> {
    const version = Date.now();
    const columns = [
      users.map(({ name }) => name),
      users.map(({ email }) => email),
      users.map(() => version),
    ];
    try {
      const rows = await this.#write([...movedBy(checkpoint), [CREATE, columns]]);
      // Ids increase in the order in which the users were given.
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
    return { line: Number(line), digest: digest === null ? undefined : String(digest) };
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

function movedBy(checkpoint: ImportCheckpoint | undefined): Steps {
  if (checkpoint === undefined) return [];
  return [
    [MOVE_IMPORT, [storedKey(checkpoint.key), checkpoint.from, checkpoint.to, Date.now(), checkpoint.digest]],
  ];
}

function constraintOf(error: unknown): unknown {
  return causeOf(error).constraint;
}

/** The column of a violated NOT NULL constraint. */
function columnOf(error: unknown): unknown {
  return causeOf(error).column;
}

function causeOf(error: unknown): { readonly constraint?: unknown; readonly column?: unknown } {
  return Object(Object(error).cause);
}

/**
 * Moves the recorded position of an import. If it is not the expected one, CASE gives NULL, which the column
 * rejects.
 */
const MOVE =
  'UPDATE imports SET line = CASE WHEN line = $2 THEN $3::bigint END, moved_at = $4::bigint, digest = $5 WHERE key = $1';
const MOVE_IMPORT = { name: 'import-move', text: MOVE };
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
const BEGIN_IMPORT = {
  name: 'import-begin',
  text: 'INSERT INTO imports (key, line, moved_at) VALUES ($1, 0, $2) ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING line, digest',
};
const EXPIRE_IMPORTS = { name: 'import-expire', text: 'DELETE FROM imports WHERE moved_at < $1' };
/** The position, from 1, of the first email that is already taken. */
const FIRST_TAKEN = {
  name: 'user-first-taken',
  text: `
    SELECT min(nth) FROM unnest($1::text[]) WITH ORDINALITY AS given (email, nth)
    WHERE EXISTS (SELECT FROM users WHERE lower(users.email COLLATE "C") = lower(given.email COLLATE "C"))`,
};
