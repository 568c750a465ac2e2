import type { DatabaseSync } from 'node:sqlite';
import type { AuditStore } from '../../access/audit.ts';
import {
  type ApiTokens,
  eventOf,
  MAX_TOKENS,
  PRUNE_WINDOW,
  rowOf,
  TOKEN_COLUMNS,
  tokenOf,
} from '../access-rows.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { readRows } from './connection.ts';

/** The statements that write tokens. */
export const TOKEN_WRITES = {
  createToken: `
    INSERT INTO api_tokens (name, digest, scopes, created_at, expires_at)
    SELECT ?1, ?2, ?3, ?4, ?5 WHERE (SELECT count(*) FROM api_tokens WHERE revoked_at IS NULL) < ${MAX_TOKENS}
    ON CONFLICT DO NOTHING RETURNING seq`,
  revokeToken: 'UPDATE api_tokens SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL RETURNING seq',
  noteTokenUses: `
    UPDATE api_tokens SET used_at = uses.at
    FROM (SELECT value ->> 0 AS digest, value ->> 1 AS at FROM json_each(?)) AS uses
    WHERE api_tokens.digest = uses.digest AND coalesce(used_at, 0) < uses.at`,
} as const;

/** The API tokens in SQLite. */
export function sqliteApiTokens(reads: DatabaseSync, writes: WriteQueue): ApiTokens {
  const rows = `SELECT json_array(${TOKEN_COLUMNS}) AS row FROM api_tokens`;
  const all = reads.prepare(`${rows} ORDER BY seq`);
  const live = reads.prepare(`${rows} WHERE revoked_at IS NULL ORDER BY seq`);
  const read = (statement: typeof all) =>
    readRows<{ row: string }>(statement).map(({ row }) => tokenOf(JSON.parse(row) as readonly unknown[]));
  return {
    list: () => read(all),
    live: () => read(live),
    async create({ name, digest, scopes, createdAt, expiresAt }) {
      const made = await writes.write('createToken', name, digest, scopes.join(' '), createdAt, expiresAt);
      return made.length > 0;
    },
    async revoke(name, at) {
      return (await writes.write('revokeToken', name, at)).length > 0;
    },
    async noteUses(uses) {
      await writes.write('noteTokenUses', JSON.stringify([...uses]));
    },
  };
}

/** The oldest events of a kind, except its last `?2`. */
const oldest = (action: number) => `
      SELECT seq FROM (SELECT seq FROM audit_events
        WHERE action = ${action} AND seq <= (SELECT seq FROM audit_events WHERE action = ${action} ORDER BY seq DESC LIMIT 1 OFFSET ?2)
        ORDER BY seq LIMIT ${PRUNE_WINDOW})`;

/** The statements that write audit events. */
export const AUDIT_WRITES = {
  addAuditEvents: `
    INSERT INTO audit_events (at, action, principal, type, data)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?)`,
  /** Removes events before `?1`, and all but the last `?2` events of each kind. */
  pruneAuditEvents: `
    DELETE FROM audit_events WHERE seq IN (
      SELECT seq FROM (SELECT seq FROM audit_events WHERE at < ?1 ORDER BY at LIMIT ${PRUNE_WINDOW})
      UNION ${oldest(0)} UNION ${oldest(1)})
    RETURNING seq`,
} as const;

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
