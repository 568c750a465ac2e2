import type { PruneStep } from '../../../inbox/prune.ts';
import type { Server } from '../pool/server.ts';

/** Maximum number of keys that a step forgets by their age, and as many by their number. */
const WINDOW = 200;

// What another process is forgetting is skipped.
const FORGET = {
  name: 'forget-keys',
  text: `
    WITH old AS MATERIALIZED (
      SELECT seq FROM remembered_keys WHERE received_at < $1
      ORDER BY received_at LIMIT ${WINDOW} FOR UPDATE SKIP LOCKED),
    excess AS MATERIALIZED (
      SELECT seq FROM remembered_keys WHERE seq <= (SELECT max(seq) FROM remembered_keys) - $2::bigint
      ORDER BY seq LIMIT ${WINDOW} FOR UPDATE SKIP LOCKED),
    gone AS (
      DELETE FROM remembered_keys
      WHERE seq = ANY (ARRAY(SELECT seq FROM old UNION SELECT seq FROM excess)) RETURNING 1)
    SELECT count(*) FROM gone`,
};

/** Forgets keys of deliveries that were received before `before`, and the first ones while there are more than `max`. */
export async function forgetKeys(server: Server, before: number, max: number): Promise<PruneStep> {
  const [row] = await server.write(FORGET, [before, max]);
  const removed = Number(row?.[0] ?? 0);
  return { removed, looked: removed, isLast: removed < WINDOW };
}
