import { requireNothingPending } from '../migration-files.ts';
import { pendingMigrations } from '../postgres/migrate.ts';
import { sqlState } from '../postgres/pool/faults.ts';
import { openFailure, openFirst } from '../postgres/pool/first-connection.ts';
import type { MoveEnd } from './move-end.ts';
import { inUse, MoveError } from './move-error.ts';
import { moveReads, prepareForMove, refuseServices } from './postgres-reads.ts';
import { movedTables } from './tables.ts';

const LOCK_NOT_AVAILABLE = '55P03';

/** Opens a database as the source of a move, locked against writes. */
export async function openPostgresSource(url: string): Promise<MoveEnd> {
  try {
    await using opening = new AsyncDisposableStack();
    const connection = opening.use(await openFirst(url));
    await prepareForMove(connection);
    requireNothingPending(await pendingMigrations(connection), 'Run "portico migrate" on it first.');
    await refuseServices(connection, 'source');
    const tables = movedTables.map(({ name }) => name).join(', ');
    await connection.run({ text: `BEGIN; LOCK TABLE ${tables} IN SHARE MODE` }, undefined);
    const reads = await moveReads(connection, 'source');
    const rest = opening.move();
    return { ...reads, [Symbol.asyncDispose]: () => rest.disposeAsync() };
  } catch (cause) {
    if (sqlState(cause) === LOCK_NOT_AVAILABLE) throw inUse('source');
    throw cause instanceof MoveError ? cause : openFailure(cause);
  }
}
