import pg from 'pg';
import { Connection } from '../postgres-pool/connection.ts';

/** Timeout of opening a connection, and of a statement, outside the scratch schema, in milliseconds. */
const PLAIN_TIMEOUT = 5_000;

/** A promise that Portico makes on a server, and how it is tried there. */
export interface Check {
  readonly name: string;
  readonly promise: string;
  /** The checks without which this one says nothing. */
  readonly needs?: readonly string[];
  /** What it means if the promise does not hold, and what to do. */
  readonly meaning: string;
  /** Timeout in milliseconds. Default: that of most checks. */
  readonly timeout?: number;
  /** Resolves to the observation if the promise holds. Rejects with NotSeenError, or with any other error, if not. */
  run(bench: Bench): Promise<string>;
}

/** A promise does not hold, or `verdict` says that this cannot be known; the message is the observation. */
export class NotSeenError extends Error {
  override readonly name = 'NotSeenError';
  readonly verdict: 'fails' | 'unknown';
  readonly meaning: string | undefined;

  constructor(
    seen: string,
    { verdict = 'fails', meaning }: Partial<Pick<NotSeenError, 'verdict' | 'meaning'>> = {},
  ) {
    super(seen);
    this.verdict = verdict;
    this.meaning = meaning;
  }
}

/** Throws NotSeenError if a condition is false. */
export function expectSeen(condition: boolean, seen: string, meaning?: string): asserts condition {
  if (!condition) throw new NotSeenError(seen, { meaning });
}

/** The server, and what one check opens there: disposing of it destroys the connections. */
export class Bench implements AsyncDisposable {
  readonly url: string;
  /** The name of the scratch schema, which exists once a check has made it. */
  readonly schema: string;
  /** How long an event of another session may take, in milliseconds: a part of the time of the check. */
  readonly soon: number;
  readonly #opened = new AsyncDisposableStack();
  #closed = false;

  constructor(url: string, schema: string, timeout: number) {
    this.url = url;
    this.schema = schema;
    this.soon = timeout / 4;
  }

  /** Keeps something until the check has ended. */
  async use<T extends AsyncDisposable>(opening: Promise<T>): Promise<T> {
    const opened = await opening;
    // A check that has timed out goes on until its next wait ends.
    if (this.#closed) {
      await opened[Symbol.asyncDispose]();
      throw new Error('The check has ended');
    }
    return this.#opened.use(opened);
  }

  /** Opens a connection as Portico does, in the scratch schema. */
  connect(): Promise<Connection> {
    return this.use(Connection.open(this.url, { readOnly: true, schema: this.schema }));
  }

  /** Runs a query on a connection without Portico's settings, which a pooler would keep for other clients. */
  plain(text: string): Promise<Readonly<Record<string, unknown>>> {
    return plainQuery(this.url, text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#opened.disposeAsync();
  }
}

/** The first row of a query, on a separate connection without Portico's settings. */
export async function plainQuery(url: string, text: string): Promise<Readonly<Record<string, unknown>>> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: PLAIN_TIMEOUT,
    query_timeout: PLAIN_TIMEOUT,
    fallback_application_name: 'portico',
  });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<Record<string, unknown>>(text);
    return rows[0] ?? {};
  } finally {
    // A server that does not answer would not close it either.
    client.end().catch(() => {});
    setTimeout(() => client.connection.stream.destroy(), PLAIN_TIMEOUT).unref();
  }
}
