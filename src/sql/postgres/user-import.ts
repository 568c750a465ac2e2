import type { ImportCheckpoint } from '../../relations/import.ts';
import type { NewUser } from '../../relations/user.ts';
import type { WholeImport } from '../../relations/user-stores.ts';
import type { DatabaseObserver } from '../batch-queue.ts';
import type { Row, Steps } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { imports } from '../stores/stored-users.ts';
import type { PostgresSql } from './sql.ts';
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
  readonly sql: PostgresSql;
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
    const [[ids] = []] = await this.#write(checkpoint, [IMPORT, values]);
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
      const rows = await this.#write(checkpoint, [CREATE, columns]);
      // Ids increase in the order in which the users were given.
      return { ids: rows.map(([id]) => Number(id)).sort((a, b) => a - b) };
    } catch (error) {
      return imports.refused(this.#options.sql, users, error);
    }
  }

  /** Runs a statement, in one transaction with the move of the import. */
  async #write(checkpoint: ImportCheckpoint | undefined, step: Steps[number]): Promise<readonly Row[]> {
    const { server, sql, observer, onWritten } = this.#options;
    if (checkpoint !== undefined) return imports.refusingMoved(sql.writeWith(imports.move(checkpoint), step));
    try {
      return await singleWrite(observer, () => server.write(...step));
    } finally {
      onWritten();
    }
  }
}

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
