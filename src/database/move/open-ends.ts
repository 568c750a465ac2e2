import { engineOf } from '../engine-of.ts';
import type { MoveEnd, MoveTarget } from './move-end.ts';

/** Opens the source of a move. Fails with DatabaseOpenError, or MoveError while something else has it open. */
export async function openMoveSource(url: string): Promise<MoveEnd> {
  const { engine, place } = engineOf(url);
  if (engine === 'postgres') return (await import('./postgres-source.ts')).openPostgresSource(place);
  return (await import('./sqlite-ends.ts')).openSqliteSource(place);
}

/** Opens the target of a move, and brings its schema up to date. Fails as `openMoveSource` does. */
export async function openMoveTarget(url: string): Promise<MoveTarget> {
  const { engine, place } = engineOf(url);
  if (engine === 'postgres') return (await import('./postgres-target.ts')).openPostgresTarget(place);
  return (await import('./sqlite-ends.ts')).openSqliteTarget(place);
}
