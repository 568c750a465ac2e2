import { serverUrls } from '../../database-url.ts';
import { Connection, type ConnectOptions, ReadOnlyServerError } from './connection.ts';
import { describeFault } from './faults.ts';

/** The next server is tried beside one that has not answered for this long, in milliseconds. */
const NEXT_SERVER_DELAY = 250;

/** Opens a connection to a server; rejects as `Connection.open` does. */
export type Connect = () => Promise<Connection>;

/**
 * Opens connections to the first server of `url` that accepts writes, or that answers if `readOnly`. With several servers
 * it starts with the one that was used last. Rejects when none is usable.
 */
export function connector(url: string, options: ConnectOptions = {}): Connect {
  const servers = serverUrls(url).map((one) => () => Connection.open(one, options));
  const [only, ...others] = servers;
  if (only !== undefined && others.length === 0) return only;
  let first = 0;
  return async () => {
    // A concurrent call may change `first`.
    const begin = first;
    const found = await firstOf([...servers.slice(begin), ...servers.slice(0, begin)]);
    first = (begin + found.nth) % servers.length;
    return found.connection;
  };
}

interface Found {
  readonly nth: number;
  readonly connection: Connection;
}

/** The first connection that opens; an attempt starts when the one before it fails, or after `NEXT_SERVER_DELAY`. */
function firstOf(attempts: readonly Connect[]): Promise<Found> {
  const { promise, resolve, reject } = Promise.withResolvers<Found>();
  const errors: unknown[] = [];
  let begun = 0;
  let done = false;
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    clearTimeout(timer);
    const nth = begun;
    const attempt = attempts[nth];
    if (done || attempt === undefined) return;
    begun++;
    timer = setTimeout(begin, NEXT_SERVER_DELAY);
    attempt().then(
      (connection) => {
        if (done) return void connection[Symbol.asyncDispose]();
        done = true;
        clearTimeout(timer);
        resolve({ nth, connection });
      },
      (error: unknown) => {
        errors.push(error);
        if (!done && errors.length === attempts.length) reject(noneOf(errors));
        begin();
      },
    );
  };
  begin();
  return promise;
}

/** The reason why no server is usable; the error of a broken one is more useful than that of a replica. */
function noneOf(errors: readonly unknown[]): unknown {
  const telling = errors.find((error) => !(error instanceof ReadOnlyServerError));
  if (telling === undefined)
    return new ReadOnlyServerError('all servers are replicas that cannot be written to');
  return new Error(`none of ${errors.length} servers takes writes: ${describeFault(telling)}`, {
    cause: telling,
  });
}
