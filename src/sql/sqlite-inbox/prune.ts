/** Maximum number of keys that a step forgets by age, and again by count. */
const WINDOW = 256;

/** Before the delivery `?1` is removed: remembers its dedup key if it was received at or after `?2`. */
export const REMEMBER_KEY = `
  INSERT INTO remembered_keys (source, dedup_key, id, received_at)
  SELECT source, dedup_key, id, received_at FROM deliveries
  WHERE seq = ?1 AND dedup_key IS NOT NULL AND received_at >= ?2
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = ?1 AND status = 'dead')
  ON CONFLICT DO NOTHING`;

/**
 * Forgets keys of deliveries received before `?1`, and the oldest keys as long as there are more than `?2`.
 */
export const FORGET_KEYS = `
  DELETE FROM remembered_keys WHERE seq IN (
    SELECT seq FROM (
      SELECT seq FROM remembered_keys WHERE received_at < ?1 ORDER BY received_at LIMIT ${WINDOW})
    UNION SELECT seq FROM (
      SELECT seq FROM remembered_keys WHERE seq <= (SELECT max(seq) FROM remembered_keys) - ?2
      ORDER BY seq LIMIT ${WINDOW}))
  RETURNING seq`;

/** The result of a step that has removed this many keys. */
export function forgotten(removed: number) {
  return { removed, looked: removed, isLast: removed < WINDOW };
}
