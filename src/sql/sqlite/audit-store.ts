import type { DatabaseSync } from 'node:sqlite';
import type { AuditStore } from '../../access/audit.ts';
import { eventOf, PRUNE_WINDOW, rowOf } from '../access-rows.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { readRows } from './connection.ts';

export const ADD_AUDIT_EVENTS = `
    INSERT INTO audit_events (at, action, principal, type, data)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?)`;

const oldest = (action: number) => `
      SELECT seq FROM (SELECT seq FROM audit_events
        WHERE action = ${action} AND seq <= (SELECT seq FROM audit_events WHERE action = ${action} ORDER BY seq DESC LIMIT 1 OFFSET ?2)
        ORDER BY seq LIMIT ${PRUNE_WINDOW})`;

/** Removes what happened before `?1`, and of each kind what is older than its last `?2`. */
export const PRUNE_AUDIT_EVENTS = `
    DELETE FROM audit_events WHERE seq IN (
      SELECT seq FROM (SELECT seq FROM audit_events WHERE at < ?1 ORDER BY at LIMIT ${PRUNE_WINDOW})
      UNION ${oldest(0)} UNION ${oldest(1)})
    RETURNING seq`;

/** The audit events in SQLite. */
export function sqliteAuditStore(reads: DatabaseSync, writes: WriteQueue): AuditStore {
  const find = reads.prepare(`
    SELECT at, action, principal, type, data FROM audit_events
    WHERE (?1 IS NULL OR principal = ?1) AND (?2 IS NULL OR type = ?2) AND at > ?3 ORDER BY seq DESC LIMIT ?4 + 0`);
  return {
    async append(events) {
      await writes.write('addAuditEvents', JSON.stringify(events.map(rowOf)));
    },
    find({ principal = null, type = null, after = -1, limit }) {
      const rows = readRows<Record<string, unknown>>(find, principal, type, after, limit);
      return rows.map((row) => eventOf(Object.values(row))).toReversed();
    },
    async prune(before, max) {
      return (await writes.write('pruneAuditEvents', before, max)).length;
    },
  };
}
