import pg from 'pg';
import type { Statement } from '../../../src/database/postgres/pool/connection.ts';
import type { Server } from '../../../src/database/postgres/pool/server.ts';
import type { Layout } from './layouts.ts';
import { timesOf } from './times.ts';

/** The session settings of Portico. */
const SETTINGS = `
  SET enable_seqscan = off; SET jit = off; SET statement_timeout = 5000; SET lock_timeout = 400`;
const WARM_UP = 10;

/** A connection on which Portico's own statements run as a layout needs them. */
export interface OneConnection extends AsyncDisposable {
  readonly client: pg.Client;
  /** What Portico's functions take for the pool. */
  readonly server: Server;
}

export async function oneConnection(url: string, layout: Layout): Promise<OneConnection> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(SETTINGS);
  const write = async ({ name = '', text }: Statement, values: readonly unknown[]) => {
    const query = { name, text: layout.rewritten(text), values: [...values], rowMode: 'array' as const };
    return (await client.query<unknown[]>(query)).rows;
  };
  const server = { write } as unknown as Server;
  return { client, server, [Symbol.asyncDispose]: () => client.end() };
}

/** Takes a step `count` times; resolves to its times, and what it writes to the log for each of its `per` rows. */
export async function timed(
  client: pg.Client,
  count: number,
  per: number,
  step: () => Promise<unknown>,
): Promise<string> {
  const logged = async () => {
    const { rows } = await client.query(`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes`);
    return Number(rows[0].bytes);
  };
  for (let i = 0; i < WARM_UP; i++) await step();
  const times: number[] = [];
  const before = await logged();
  for (let i = 0; i < count; i++) {
    const started = performance.now();
    await step();
    times.push(performance.now() - started);
  }
  const bytes = Math.round(((await logged()) - before) / count / per);
  return `${timesOf(times)}, ${bytes} bytes of log for each`;
}
