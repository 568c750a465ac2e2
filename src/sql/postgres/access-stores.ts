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
import type { DatabaseObserver } from '../batch-queue.ts';
import type { Server } from '../postgres-pool/server.ts';
import { singleWrite } from './write-queue.ts';

const ALL = { name: 'tokens', text: `SELECT ${TOKEN_COLUMNS} FROM api_tokens ORDER BY seq` };
const LIVE = {
  name: 'live-tokens',
  text: `SELECT ${TOKEN_COLUMNS} FROM api_tokens WHERE revoked_at IS NULL ORDER BY seq`,
};
const CREATE = {
  name: 'create-token',
  text: `
    INSERT INTO api_tokens (name, digest, scopes, created_at, expires_at)
    SELECT $1::text, $2::text, $3::text, $4::bigint, $5::bigint
    WHERE (SELECT count(*) FROM api_tokens WHERE revoked_at IS NULL) < ${MAX_TOKENS}
    ON CONFLICT DO NOTHING RETURNING seq`,
};
const REVOKE = {
  name: 'revoke-token',
  text: `
    UPDATE api_tokens SET revoked_at = $2::bigint WHERE name = $1::text AND revoked_at IS NULL RETURNING seq`,
};
const NOTE = {
  name: 'note-token-uses',
  text: `
    UPDATE api_tokens SET used_at = uses.at FROM unnest($1::text[], $2::bigint[]) AS uses (digest, at)
    WHERE api_tokens.digest = uses.digest AND coalesce(used_at, 0) < uses.at`,
};

/** The API tokens in PostgreSQL. */
export function postgresApiTokens(server: Server, observer: DatabaseObserver): ApiTokens {
  const write = (statement: typeof CREATE, values: readonly unknown[]) =>
    singleWrite(observer, () => server.write(statement, values));
  return {
    list: async () => (await server.read(ALL, [])).map(tokenOf),
    live: async () => (await server.read(LIVE, [])).map(tokenOf),
    async create({ name, digest, scopes, createdAt, expiresAt }) {
      return (await write(CREATE, [name, digest, scopes.join(' '), createdAt, expiresAt])).length > 0;
    },
    async revoke(name, at) {
      return (await write(REVOKE, [name, at])).length > 0;
    },
    async noteUses(uses) {
      await write(NOTE, [[...uses.keys()], [...uses.values()]]);
    },
  };
}

const ADD = {
  name: 'add-audit-events',
  text: `
    INSERT INTO audit_events (at, action, principal, type, data)
    SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, value ->> 2, value ->> 3, value ->> 4
    FROM json_array_elements($1::json)`,
};
const FIND = {
  name: 'find-audit-events',
  text: `
    SELECT at, action, principal, type, data FROM audit_events
    WHERE ($1::text IS NULL OR principal = $1) AND ($2::text IS NULL OR type = $2) AND at > $3::bigint
    ORDER BY seq DESC LIMIT $4::bigint`,
};

const oldest = (action: number) => `
      (SELECT seq FROM audit_events
       WHERE action = ${action} AND seq <= (SELECT seq FROM audit_events WHERE action = ${action} ORDER BY seq DESC LIMIT 1 OFFSET $2::bigint)
       ORDER BY seq LIMIT ${PRUNE_WINDOW} FOR UPDATE SKIP LOCKED)`;
// Skips events that another process is removing.
const PRUNE = {
  name: 'prune-audit-events',
  text: `
    WITH old AS MATERIALIZED (
      SELECT seq FROM audit_events WHERE at < $1::bigint ORDER BY at LIMIT ${PRUNE_WINDOW} FOR UPDATE SKIP LOCKED),
    refusals AS MATERIALIZED ${oldest(0)},
    actions AS MATERIALIZED ${oldest(1)},
    gone AS (
      DELETE FROM audit_events WHERE seq = ANY (ARRAY(
        SELECT seq FROM old UNION SELECT seq FROM refusals UNION SELECT seq FROM actions)) RETURNING 1)
    SELECT count(*) FROM gone`,
};

/** The audit events in PostgreSQL. */
export function postgresAuditStore(server: Server, observer: DatabaseObserver): AuditStore {
  return {
    async append(events) {
      const rows = JSON.stringify(events.map(rowOf));
      await singleWrite(observer, () => server.write(ADD, [rows]));
    },
    async find({ principal = null, type = null, after = -1, limit }) {
      const rows = await server.read(FIND, [principal, type, after, limit]);
      return rows.map(eventOf).toReversed();
    },
    async prune(before, max) {
      const [row] = await singleWrite(observer, () => server.write(PRUNE, [before, max]));
      return Number(row?.[0] ?? 0);
    },
  };
}
