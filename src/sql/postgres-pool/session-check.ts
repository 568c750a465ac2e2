import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { DatabaseOpenError } from '../../core/errors.ts';

/** The order of the queries; with it, a pooler that reuses backends as a stack or in rotation is detected. */
const ORDER = ['a', 'b', 'a', 'a', 'b', 'b', 'a'] as const;

const SHARED =
  'a pooler such as PgBouncer in transaction or statement mode is between this process and the server, and gives each transaction another session. Use session mode (pool_mode = session), or name the server itself in the URL.';

/**
 * Throws DatabaseOpenError if a connection does not have its own session. A client connected directly to the
 * server knows its backend's process id. Behind a pooler that id differs; then a second connection is opened,
 * and both must keep their own backends and session settings while they are queried alternately. The setting
 * used for this has no other effect.
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

/**
 * Marks a session; the returned function resolves to its backend's process id, or undefined if the mark is
 * missing.
 */
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
