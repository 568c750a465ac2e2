import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { DatabaseOpenError } from '../../core/errors.ts';

/** The order of the questions: neither a stack of free backends nor a ring of them gives each of two clients its own. */
const ORDER = ['a', 'b', 'a', 'a', 'b', 'b', 'a'] as const;

const SHARED =
  'a pooler such as PgBouncer in transaction or statement mode is between this process and the server, and gives each transaction another session. Use session mode (pool_mode = session), or name the server itself in the URL.';

/**
 * Throws DatabaseOpenError when a connection is no session of its own. A client that is connected to the server itself
 * knows the number of its backend. Behind a pooler it has been told another one: then a second connection must keep its
 * own backend too, with the settings of its session, while both ask in turn. What is set has no meaning for others.
 */
export async function requireSession(client: pg.Client, connect: () => Promise<pg.Client>): Promise<void> {
  const { processID } = client as unknown as { readonly processID: number };
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  if (rows[0]?.pid === processID) return;
  const other = await connect();
  try {
    const ask = { a: await marked(client), b: await marked(other) };
    const first = { a: await ask.a(), b: await ask.b() };
    let kept = first.a !== undefined && first.b !== undefined && first.a !== first.b;
    for (const name of ORDER) kept &&= (await ask[name]()) === first[name];
    if (!kept) throw new DatabaseOpenError(SHARED);
  } finally {
    await other.end();
  }
}

/** Marks a session; the function resolves to its backend, undefined when that is not marked. */
async function marked(client: pg.Client): Promise<() => Promise<number | undefined>> {
  const mark = randomUUID();
  await client.query(`SET portico.session = '${mark}'`);
  return async () => {
    const { rows } = await client.query<{ pid: number; mark: string | null }>(
      `SELECT pg_backend_pid() AS pid, current_setting('portico.session', true) AS mark`,
    );
    return rows[0]?.mark === mark ? rows[0].pid : undefined;
  };
}
