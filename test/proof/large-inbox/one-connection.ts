import { readFileSync } from 'node:fs';
import pg from 'pg';
import type { Statement } from '../../../src/sql/postgres-pool/connection.ts';
import type { Server } from '../../../src/sql/postgres-pool/server.ts';
import type { Layout } from './layouts.ts';
import { timesOf } from './times.ts';

/** The session settings of Portico. */
const SETTINGS = `
  SET enable_seqscan = off; SET jit = off; SET statement_timeout = 5000; SET lock_timeout = 400;
  SET plan_cache_mode = force_generic_plan; SET portico.bodies = 'slots'`;
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

/**
 * Takes a step `count` times; resolves to its times, to the time of a processor that the server spent on each, which does
 * not depend on other load (on Linux), and to what each of its `per` rows adds to the log.
 */
export async function timed(
  client: pg.Client,
  count: number,
  per: number,
  step: () => Promise<unknown>,
): Promise<string> {
  const used = async () => {
    const { rows } = await client.query(
      `SELECT pg_backend_pid() AS pid, pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes`,
    );
    const busy = readFileSync(`/proc/${rows[0].pid}/schedstat`, 'utf8').split(' ')[0];
    return { bytes: Number(rows[0].bytes), busy: Number(busy) / 1e6 };
  };
  for (let i = 0; i < WARM_UP; i++) await step();
  const times: number[] = [];
  const before = await used();
  for (let i = 0; i < count; i++) {
    const started = performance.now();
    await step();
    times.push(performance.now() - started);
  }
  const after = await used();
  const busy = ((after.busy - before.busy) / count).toFixed(1);
  const bytes = Math.round((after.bytes - before.bytes) / count / per);
  return `${timesOf(times)}, ${busy} ms of a processor, ${bytes} bytes of log for each row`;
}
