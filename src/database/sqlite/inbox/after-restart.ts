import type { DatabaseSync } from 'node:sqlite';
import { openJobs } from '../../inbox-sql.ts';

/** SQLITE_CORRUPT (sqlite.org/rescode.html). */
const CORRUPT = 11;

/** The last times that the database has seen: the latest heartbeat, and the newest delivery. */
const LAST_SEEN = `
  SELECT max(
    coalesce((SELECT max(seen_at) FROM targets), 0),
    coalesce((SELECT received_at FROM deliveries ORDER BY seq DESC LIMIT 1), 0)) AS lastSeen`;

/** Whether an open job has a time of its own, by the clock of the system, and no attempt yet. */
const WAITS_FOR_TIME = '(owner IS NULL AND attempts = 0 AND run_at IS NOT NULL)';

const OPEN = `seq IN (${openJobs('seq')})`;

/**
 * Puts the times of open jobs right when a service starts that has the file for itself; `now` is in milliseconds since
 * the epoch. Leases of earlier processes have ended. A clock that was set back by an hour would leave retries an hour
 * late, so their times go back as far as the clock has. What waits for a time of its own keeps that.
 */
export function resetTimes(db: DatabaseSync, now: number): void {
  const ahead = lastSeen(db) - now;
  db.exec('BEGIN IMMEDIATE');
  try {
    db.prepare(
      `UPDATE jobs SET due_at = CASE WHEN ${WAITS_FOR_TIME} THEN run_at ELSE ?1 END
       WHERE ${OPEN} AND due_at > ?1 AND (owner IS NOT NULL OR attempts = 0)`,
    ).run(now);
    if (ahead > 0) {
      db.prepare(
        `UPDATE jobs SET due_at = max(?1, due_at - ?2) WHERE ${OPEN} AND due_at > ?1 AND NOT ${WAITS_FOR_TIME}`,
      ).run(now, ahead);
      db.prepare('UPDATE targets SET seen_at = ?1 WHERE seen_at > ?1').run(now);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** 0 when a page of the deliveries is damaged: the other doors can still work, and the health check of writes says it. */
function lastSeen(db: DatabaseSync): number {
  try {
    return Number(db.prepare(LAST_SEEN).get()?.lastSeen ?? 0);
  } catch (error) {
    if ((error as { readonly errcode?: unknown }).errcode === CORRUPT) return 0;
    throw error;
  }
}
