import { DatabaseOpenError } from '../../../core/store-errors.ts';
import type { Connection } from './connection.ts';
import { connector } from './connector.ts';
import { describeFault, sqlState } from './faults.ts';

/** The oldest version of the server that has all we use. */
const OLDEST = 130_000;

/** What to do about the errors that a first start meets, by their SQLSTATE. */
const ADVICE: Readonly<Record<string, string>> = {
  '28000': 'Check the user and how the server lets it in (pg_hba.conf).',
  '28P01': 'Check the user and the password.',
  '3D000': 'Create the database first.',
  '42501': 'The user must be allowed to create tables: make it the owner of the database.',
  '53300': 'Raise max_connections of the server; each process takes up to ten.',
  '57P03': 'Start again when the server is ready.',
};

/** Opens a connection to a server on which a database can be kept. Fails as `openFailure` says. */
export async function openFirst(url: string): Promise<Connection> {
  const connection = await connector(url)();
  try {
    await checkServer(connection);
    return connection;
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
}

/** Why a database cannot be opened, with what to do; never the URL, which can hold a password. */
export function openFailure(cause: unknown): DatabaseOpenError {
  const advice = ADVICE[sqlState(cause) ?? ''];
  return new DatabaseOpenError(
    `The PostgreSQL database cannot be opened: ${describeFault(cause)}${advice === undefined ? '' : `. ${advice}`}`,
    { cause },
  );
}

/** Does something on the first connection to a server. Fails with DatabaseOpenError. */
export async function onFirst<T>(url: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  try {
    await using connection = await openFirst(url);
    return await work(connection);
  } catch (cause) {
    throw openFailure(cause);
  }
}

/** Throws DatabaseOpenError for a server that is too old. */
async function checkServer(connection: Connection): Promise<void> {
  const [row] = await connection.run({ text: `SELECT current_setting('server_version_num')::int` }, []);
  const [version = 0] = (row ?? []) as [number?];
  if (version < OLDEST) {
    throw new DatabaseOpenError(`the server is too old; it takes PostgreSQL ${OLDEST / 10_000} or newer.`);
  }
}
