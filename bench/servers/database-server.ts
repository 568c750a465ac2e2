import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts';
import { moveTo } from '../machine/cores.ts';
import type { Workbench } from '../workbench.ts';

/** A PostgreSQL server that syncs its commits. It may use all cores, as if on a separate machine. */
export async function startDatabaseServer(bench: Workbench): Promise<PostgresServer> {
  const server = bench.use(await startPostgres({ sync: true, settings: { shared_buffers: '128MB' } }));
  moveTo(bench.cores.all, databasePid(server));
  return server;
}

/** The process whose children serve the connections. */
export function databasePid({ data }: PostgresServer): number {
  return Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n', 1)[0]);
}
