import type { AuditData, AuditEvent, AuditStore } from '../../access/audit.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import { type Dialect, queries, type Sql } from './sql.ts';

/** A token as stored: never the token itself. Times are in milliseconds since the epoch. */
export interface StoredToken {
  readonly name: string;
  /** The digest of the token. */
  readonly digest: string;
  readonly scopes: readonly string[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  /** The last recorded use. */
  readonly usedAt: number | null;
}

export type NewToken = Pick<StoredToken, 'name' | 'digest' | 'scopes' | 'createdAt' | 'expiresAt'>;

/** Maximum number of unrevoked tokens, all of which each process keeps in memory. */
export const MAX_TOKENS = 1_000;

/** The API tokens of REST and GraphQL. Fails with StoreUnavailableError. */
export interface ApiTokens {
  /** All tokens in order of creation. */
  list(): MaybePromise<readonly StoredToken[]>;
  /** The unrevoked tokens. */
  live(): MaybePromise<readonly StoredToken[]>;
  /**
   * Stores a token; resolves to false if an unrevoked token has the same name or there are too many tokens.
   */
  create(token: NewToken): Promise<boolean>;
  /** Revokes a token by name; resolves to false if there is none. */
  revoke(name: string, at: number): Promise<boolean>;
  /** Records last uses by digest; they never move backwards. */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>;
}

const COLUMNS = 'name, digest, scopes, created_at, expires_at, revoked_at, used_at';

export const TOKEN_QUERIES = queries('tokens', (sql) => ({
  list: `SELECT ${COLUMNS} FROM api_tokens ORDER BY seq`,
  live: `SELECT ${COLUMNS} FROM api_tokens WHERE revoked_at IS NULL ORDER BY seq`,
  create: `
    INSERT INTO api_tokens (name, digest, scopes, created_at, expires_at)
    SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS bigint), CAST($5 AS bigint)
    WHERE (SELECT count(*) FROM api_tokens WHERE revoked_at IS NULL) < ${MAX_TOKENS}
    ON CONFLICT DO NOTHING RETURNING seq`,
  revoke: 'UPDATE api_tokens SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL RETURNING seq',
  noteUses: `
    UPDATE api_tokens SET used_at = uses.at FROM ${sql.rows('$1', { digest: 'text', at: 'bigint' })} AS uses
    WHERE api_tokens.digest = uses.digest AND coalesce(used_at, 0) < uses.at`,
}));

/** The API tokens of a database. */
export function apiTokens(sql: Sql): ApiTokens {
  const { list, live, create, revoke, noteUses } = TOKEN_QUERIES;
  return {
    list: () => whenReady(sql.read(list), (rows) => rows.map(tokenOf)),
    live: () => whenReady(sql.read(live), (rows) => rows.map(tokenOf)),
    async create({ name, digest, scopes, createdAt, expiresAt }) {
      const [made = []] = await sql.write([create, name, digest, scopes.join(' '), createdAt, expiresAt]);
      return made.length > 0;
    },
    async revoke(name, at) {
      const [revoked = []] = await sql.write([revoke, name, at]);
      return revoked.length > 0;
    },
    async noteUses(uses) {
      await sql.write([noteUses, { rows: [...uses] }]);
    },
  };
}

/** Reads a token from a row of `COLUMNS`. */
function tokenOf(row: readonly unknown[]): StoredToken {
  const [name, digest, scopes, createdAt, ...times] = row;
  const [expiresAt, revokedAt, usedAt] = times.map((time) => (time === null ? null : Number(time)));
  return {
    name: String(name),
    digest: String(digest),
    scopes: String(scopes)
      .split(' ')
      .filter((scope) => scope !== ''),
    createdAt: Number(createdAt),
    expiresAt: expiresAt ?? null,
    revokedAt: revokedAt ?? null,
    usedAt: usedAt ?? null,
  };
}

/** Maximum number of events that a step removes by age, and again by count. */
const PRUNE_WINDOW = 500;

/**
 * All but the last `$2` events of a kind, oldest first. As a range, because PostgreSQL would leave an equal
 * kind out of the order, and might look for the events along the primary key.
 */
function excess(action: number, { either }: Dialect): string {
  const kind = `action ${either(`= ${action}`, `BETWEEN ${action} AND ${action}`)}`;
  return `
  SELECT seq FROM audit_events
  WHERE ${kind} AND seq <= (SELECT seq FROM audit_events WHERE ${kind} ORDER BY action DESC, seq DESC LIMIT 1 OFFSET $2)
  ORDER BY action, seq LIMIT ${PRUNE_WINDOW}`;
}

export const AUDIT_QUERIES = queries('audit', (sql) => ({
  add: `
    INSERT INTO audit_events (at, action, principal, type, data)
    SELECT at, action, principal, type, data
    FROM ${sql.rows('$1', { at: 'bigint', action: 'bigint', principal: 'text', type: 'text', data: 'text' })} AS given`,
  find: `
    SELECT at, action, principal, type, data FROM audit_events
    WHERE (CAST($1 AS text) IS NULL OR principal = $1) AND (CAST($2 AS text) IS NULL OR type = $2) AND at > $3
    ORDER BY seq DESC LIMIT $4 + 0`,
  // Leaves out events that another process is removing.
  prune: `
    WITH old AS MATERIALIZED (
      SELECT seq FROM audit_events WHERE at < $1 ORDER BY at LIMIT ${PRUNE_WINDOW} ${sql.lockFree}),
    refusals AS MATERIALIZED (${excess(0, sql)} ${sql.lockFree}),
    actions AS MATERIALIZED (${excess(1, sql)} ${sql.lockFree})
    DELETE FROM audit_events
    WHERE ${sql.among('seq', 'SELECT seq FROM old UNION SELECT seq FROM refusals UNION SELECT seq FROM actions')}
    RETURNING seq`,
}));

/** The audit events of a database. */
export function auditStore(sql: Sql): AuditStore {
  const { add, find, prune } = AUDIT_QUERIES;
  return {
    async append(events) {
      await sql.write([add, { rows: events.map(rowOf) }]);
    },
    find({ principal = null, type = null, after = -1, limit }) {
      return whenReady(sql.read(find, principal, type, after, limit), (rows) =>
        rows.map(eventOf).toReversed(),
      );
    },
    async prune(before, max) {
      const [removed = []] = await sql.write([prune, before, max]);
      return removed.length;
    },
  };
}

/** A stored event: the columns at, action, principal, type, data. */
type AuditRow = readonly [at: number, action: number, principal: string, type: string, data: string];

function rowOf({ at, isAction, principal, type, data }: AuditEvent): AuditRow {
  return [at, isAction ? 1 : 0, principal, type, JSON.stringify(data)];
}

function eventOf([at, action, principal, type, data]: readonly unknown[]): AuditEvent {
  return {
    at: Number(at),
    isAction: Number(action) === 1,
    principal: String(principal),
    type: String(type),
    data: JSON.parse(String(data)) as AuditData,
  };
}
