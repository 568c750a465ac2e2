import { databaseAt } from '../database-url.ts';
import type { MoveEnd, MoveTarget } from './move-end.ts';

/** Opens the source of a move. Fails with DatabaseOpenError, or with MoveError while another process uses it. */
export async function openMoveSource(url: string): Promise<MoveEnd> {
  const { engine, place } = databaseAt(url);
  if (engine === 'postgres') return (await import('./postgres-source.ts')).openPostgresSource(place);
  return (await import('./sqlite-source.ts')).openSqliteSource(place);
}

/** Opens the target of a move and migrates it. Fails as `openMoveSource` does. */
export async function openMoveTarget(url: string): Promise<MoveTarget> {
  const { engine, place } = databaseAt(url);
  if (engine === 'postgres') return (await import('./postgres-target.ts')).openPostgresTarget(place);
  return (await import('./sqlite-target.ts')).openSqliteTarget(place);
}
