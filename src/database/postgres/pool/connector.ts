import { serverUrls } from '../../server-urls.ts';
import { Connection, ReadOnlyServerError } from './connection.ts';
import { describeFault } from './faults.ts';

/** A server that has not answered after so long is joined by the next one, in milliseconds. */
const HEAD_START = 250;

/** Opens a connection to a server; rejects as `Connection.open` does. */
export type Connect = () => Promise<Connection>;

/**
 * Opens connections to the first server of `url` that takes writes, or that answers at all if `readOnly`. Where it names
 * several, the one that was found last is asked first. Rejects when none of them will do.
 */
export function connector(url: string, readOnly = false): Connect {
  const servers = serverUrls(url).map((one) => () => Connection.open({ url: one, readOnly }));
  const [only, ...others] = servers;
  if (only !== undefined && others.length === 0) return only;
  let first = 0;
  return async () => {
    // Others may look for it at the same time.
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

/** What the first attempt that succeeds opens; each begins when the one before it has failed, or takes its time. */
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
    timer = setTimeout(begin, HEAD_START);
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

/** One that cannot be used tells more than one that only copies it. */
function noneOf(errors: readonly unknown[]): unknown {
  const telling = errors.find((error) => !(error instanceof ReadOnlyServerError));
  if (telling === undefined)
    return new ReadOnlyServerError('all servers are replicas that cannot be written to');
  return new Error(`none of ${errors.length} servers takes writes: ${describeFault(telling)}`, {
    cause: telling,
  });
}
