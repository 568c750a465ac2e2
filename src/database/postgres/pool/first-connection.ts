import { DatabaseOpenError } from '../../../core/store-errors.ts';
import { serverUrls } from '../../database-url.ts';
import type { Connection } from './connection.ts';
import { connector } from './connector.ts';
import { describeFault } from './faults.ts';

/** The oldest supported version of the server. */
const OLDEST = 130_000;

/** Advice for the errors of a first start, by SQLSTATE or code. */
const ADVICE: Readonly<Record<string, string>> = {
  '28000': 'Check the user and how the server lets it in (pg_hba.conf).',
  '28P01': 'Check the user and the password.',
  '25006': 'Name the primary in the URL, or turn default_transaction_read_only off.',
  '3D000': 'Create the database first.',
  '42501':
    'The user must be allowed to create tables and to write to them: make it the owner of the database.',
  '53300': 'Raise max_connections of the server; each process takes up to ten.',
  '57P03': 'Start again when the server is ready.',
  READ_ONLY_SERVER: 'Name the primary in the URL.',
};

/** Opens a connection to a primary of a supported version that is a session of its own. Rejects with the error that `openFailure` describes. */
export async function openFirst(url: string): Promise<Connection> {
  const connection = await connector(url, { checkSession: true })();
  try {
    await checkServer(connection);
    return connection;
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Fails with DatabaseOpenError when connections to one of the replicas in a URL are no sessions of their own. One that
 * does not answer may come back.
 */
export async function checkReplica(url: string): Promise<void> {
  await Promise.all(serverUrls(url).map(checkSession));
}

async function checkSession(url: string): Promise<void> {
  try {
    await using _ = await connector(url, { readOnly: true, checkSession: true })();
  } catch (cause) {
    if (!(cause instanceof DatabaseOpenError)) return;
    throw new DatabaseOpenError(`The PostgreSQL replica cannot be used: ${cause.message}`, { cause });
  }
}

/** The error of a database that cannot be opened, with advice, without the URL: it can hold a password. */
export function openFailure(cause: unknown): DatabaseOpenError {
  const advice = ADVICE[String((cause as { readonly code?: unknown } | undefined)?.code)];
  return new DatabaseOpenError(
    `The PostgreSQL database cannot be opened: ${describeFault(cause)}${advice === undefined ? '' : `. ${advice}`}`,
    { cause },
  );
}

/** Runs `work` on a connection of its own and closes it. Fails with DatabaseOpenError. */
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
