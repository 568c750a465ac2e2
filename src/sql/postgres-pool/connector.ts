import { DatabaseOpenError } from '../../core/errors.ts';
import { serverUrls } from '../database.ts';
import { Connection, type ConnectOptions, describeFault, ReadOnlyServerError } from './connection.ts';

/** If a server does not answer within this time, the next one is tried in parallel, in milliseconds. */
const NEXT_SERVER_DELAY = 250;
/** How long a primary that answers waits for a replica, where reads want one, in milliseconds. */
const REPLICA_WAIT = 500;

/** Opens a connection to a server; rejects as `Connection.open` does. */
type Connect = () => Promise<Connection>;

/**
 * Opens connections to the first server of `url` that accepts writes or, if `readOnly`, to the first replica, else to a
 * primary. With several servers it starts with the one used last. Rejects if none is usable.
 */
export function connector(url: string, options: ConnectOptions = {}): Connect {
  const servers = serverUrls(url).map((one) => () => Connection.open(one, options));
  const [only, ...others] = servers;
  if (only !== undefined && others.length === 0) return only;
  let first = 0;
  return async () => {
    // A concurrent call may change `first`.
    const begin = first;
    const wanted = options.readOnly === true ? isReplica : () => true;
    const found = await firstOf([...servers.slice(begin), ...servers.slice(0, begin)], wanted);
    first = (begin + found.nth) % servers.length;
    return found.connection;
  };
}

interface Found {
  readonly nth: number;
  readonly connection: Connection;
}

const isReplica = (connection: Connection) => connection.isReplica;

/**
 * The first wanted connection that opens; without one, the first of all. Each attempt starts when the previous one has
 * ended without a wanted one, or after `NEXT_SERVER_DELAY`.
 */
function firstOf(
  attempts: readonly Connect[],
  isWanted: (connection: Connection) => boolean,
): Promise<Found> {
  const { promise, resolve, reject } = Promise.withResolvers<Found>();
  const errors: unknown[] = [];
  let begun = 0;
  let ended = 0;
  let other: Found | undefined;
  let done = false;
  let timer: NodeJS.Timeout | undefined;
  let patience: NodeJS.Timeout | undefined;
  const take = (found: Found) => {
    done = true;
    clearTimeout(timer);
    clearTimeout(patience);
    if (other !== undefined && other !== found) void other.connection[Symbol.asyncDispose]();
    resolve(found);
  };
  const end = () => {
    ended++;
    if (!done && ended === attempts.length) {
      if (other === undefined) reject(noneOf(errors));
      else take(other);
    }
    begin();
  };
  const begin = () => {
    clearTimeout(timer);
    const nth = begun;
    const attempt = attempts[nth];
    if (done || attempt === undefined) return;
    begun++;
    timer = setTimeout(begin, NEXT_SERVER_DELAY);
    attempt().then(
      (connection) => {
        const found = { nth, connection };
        if (done) return void connection[Symbol.asyncDispose]();
        if (isWanted(connection)) return take(found);
        if (other !== undefined) void connection[Symbol.asyncDispose]();
        else {
          other = found;
          patience = setTimeout(() => take(found), REPLICA_WAIT);
        }
        end();
      },
      (error: unknown) => {
        errors.push(error);
        end();
      },
    );
  };
  begin();
  return promise;
}

/** The error if no server is usable; the error of a broken server is more useful than that of a replica. */
function noneOf(errors: readonly unknown[]): unknown {
  const telling = errors.find((error) => !(error instanceof ReadOnlyServerError));
  if (telling === undefined)
    return new ReadOnlyServerError('all servers are replicas that cannot be written to');
  return new Error(`none of ${errors.length} servers accepts writes: ${describeFault(telling)}`, {
    cause: telling,
  });
}

/** The oldest supported version of the server. */
const OLDEST = 130_000;

/** Advice for errors at the first start, by SQLSTATE or code. */
const ADVICE: Readonly<Record<string, string>> = {
  '28000': 'Check the user and its entry in pg_hba.conf.',
  '28P01': 'Check the user and the password.',
  '25006': 'Name the primary in the URL, or turn default_transaction_read_only off.',
  '3D000': 'Create the database first.',
  '42501':
    'The user must be allowed to create tables and to write to them: make it the owner of the database.',
  '53300': 'Raise max_connections of the server; each process takes up to ten.',
  '57P03': 'Start again when the server is ready.',
  READ_ONLY_SERVER: 'Name the primary in the URL.',
};

/**
 * Opens a connection with its own session to a primary of a supported version. Rejects with an error for
 * `openFailure`.
 */
export async function openFirst(url: string, schema?: string): Promise<Connection> {
  const connection = await connector(url, { checkSession: true, schema })();
  try {
    await checkServer(connection);
    return connection;
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Fails with DatabaseOpenError if connections to one of the replicas in a URL do not have their own sessions.
 * A replica that does not answer is accepted, because it may come back.
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

/**
 * The error if a database cannot be opened, with advice but without the URL, which may contain a password.
 */
export function openFailure(cause: unknown): DatabaseOpenError {
  const advice = ADVICE[String((cause as { readonly code?: unknown } | undefined)?.code)];
  return new DatabaseOpenError(
    `The PostgreSQL database cannot be opened: ${describeFault(cause)}${advice === undefined ? '' : `. ${advice}`}`,
    { cause },
  );
}

/** Runs `work` on a new connection and closes it. Fails with DatabaseOpenError. */
export async function onFirst<T>(
  url: string,
  work: (connection: Connection) => Promise<T>,
  schema?: string,
): Promise<T> {
  try {
    await using connection = await openFirst(url, schema);
    return await work(connection);
  } catch (cause) {
    throw openFailure(cause);
  }
}

/** Throws DatabaseOpenError if the server is too old. */
async function checkServer(connection: Connection): Promise<void> {
  const [row] = await connection.run({ text: `SELECT current_setting('server_version_num')::int` }, []);
  const [version = 0] = (row ?? []) as [number?];
  if (version < OLDEST) {
    throw new DatabaseOpenError(`the server is too old: PostgreSQL ${OLDEST / 10_000} or newer is required.`);
  }
}
