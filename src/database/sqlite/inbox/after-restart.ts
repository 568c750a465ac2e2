import type { DatabaseSync } from 'node:sqlite';

/** The latest heartbeat, at most a minute before the last thing that an earlier process has done. */
const LAST_SEEN = 'SELECT max(seen_at) AS lastSeen FROM targets';

/**
 * Puts the times of open jobs right when a service starts that has the file for itself; `now` is in milliseconds since
 * the epoch. Leases of earlier processes have ended. A clock that was set back by an hour would leave retries an hour
 * late, so their times go back as far as the clock has.
 */
export function resetTimes(db: DatabaseSync, now: number): void {
  const ahead = Number(db.prepare(LAST_SEEN).get()?.lastSeen ?? 0) - now;
  db.exec('BEGIN IMMEDIATE');
  try {
    db.prepare(
      `UPDATE jobs SET due_at = ?1 WHERE status = 'open' AND due_at > ?1 AND (owner IS NOT NULL OR attempts = 0)`,
    ).run(now);
    if (ahead > 0) {
      db.prepare(`UPDATE jobs SET due_at = max(?1, due_at - ?2) WHERE status = 'open' AND due_at > ?1`).run(
        now,
        ahead,
      );
      db.prepare('UPDATE targets SET seen_at = ?1 WHERE seen_at > ?1').run(now);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
