import { requireNothingPending } from '../migration-files.ts';
import { pendingMigrations } from '../postgres/migrate.ts';
import type { MoveEnd } from './move-end.ts';
import { moveReads, openEnd, refuseServices } from './postgres-reads.ts';
import { movedTables } from './tables.ts';

/** Opens a database as the source of a move, locked against writes. */
export function openPostgresSource(url: string): Promise<MoveEnd> {
  return openEnd(url, 'source', async (connection) => {
    requireNothingPending(await pendingMigrations(connection), 'Run "portico migrate" on it first.');
    await refuseServices(connection, 'source');
    const tables = movedTables.map(({ name }) => name).join(', ');
    await connection.run({ text: `BEGIN; LOCK TABLE ${tables} IN SHARE MODE` }, undefined);
    return moveReads(connection, 'source');
  });
}
