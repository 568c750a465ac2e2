import { WAITING_TARGETS } from '../../inbox-sql.ts';
import type { Server } from '../pool/server.ts';
import { storable, stored } from '../text.ts';

// Ordered by name, so that concurrent heartbeats do not deadlock.
const HEARTBEAT = {
  text: `
    ${WAITING_TARGETS},
    mine AS (SELECT DISTINCT name FROM unnest($2::text[]) AS given (name))
    INSERT INTO targets (name, seen_at)
    SELECT name, $1::bigint FROM (
      SELECT name FROM mine UNION
      SELECT target FROM waiting WHERE target IS NOT NULL AND target NOT IN (SELECT name FROM targets)) AS either
    ORDER BY name COLLATE "C"
    ON CONFLICT (name) DO UPDATE SET seen_at = greatest(targets.seen_at, excluded.seen_at)`,
};
const EXPIRE_ORPHANS = {
  text: `
    WITH orphans AS (
      SELECT jobs.seq FROM targets JOIN jobs ON jobs.target = targets.name
      WHERE targets.seen_at <= $1 AND jobs.status = 'open' AND jobs.due_at <= $1
      LIMIT $2 FOR UPDATE OF jobs SKIP LOCKED)
    UPDATE jobs SET status = 'dead', error = $3, finished_at = $4, owner = NULL
    FROM orphans WHERE jobs.seq = orphans.seq RETURNING jobs.target`,
};

/** Records that this process runs the jobs of these targets. */
export async function recordHeartbeat(
  server: Server,
  targets: readonly string[],
  now: number,
): Promise<void> {
  await server.write(HEARTBEAT, [now, targets.map((target) => storable(target))]);
}

/** Marks orphaned jobs as dead; resolves to their targets. */
export async function expireOrphans(
  server: Server,
  { before, limit, error, now }: { before: number; limit: number; error: string; now: number },
): Promise<readonly string[]> {
  const rows = await server.write(EXPIRE_ORPHANS, [before, limit, storable(error), now]);
  return rows.map(([target]) => stored(String(target)));
}
