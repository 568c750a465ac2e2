import type { AuditData, AuditEvent } from '../access/audit.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';

/** A token as the database has it: never the token itself. Times are in milliseconds since the epoch. */
export interface StoredToken {
  readonly name: string;
  /** The digest of the token. */
  readonly digest: string;
  readonly scopes: readonly string[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  /** The last use that was noted. */
  readonly usedAt: number | null;
}

export type NewToken = Pick<StoredToken, 'name' | 'digest' | 'scopes' | 'createdAt' | 'expiresAt'>;

/** Maximum tokens that are not revoked: each process keeps all of them in memory. */
export const MAX_TOKENS = 1_000;

/** The tokens of REST and GraphQL. Fails with StoreUnavailableError. */
export interface ApiTokens {
  /** All tokens in the order in which they were made. */
  list(): MaybePromise<readonly StoredToken[]>;
  /** Those that are not revoked. */
  live(): MaybePromise<readonly StoredToken[]>;
  /** Stores a token; resolves to false when one that is not revoked has its name, or there are too many. */
  create(token: NewToken): Promise<boolean>;
  /** Revokes the token with a name; resolves to false when there is none. */
  revoke(name: string, at: number): Promise<boolean>;
  /** Notes last uses by digest, which are never set back. */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>;
}

export const TOKEN_COLUMNS = 'name, digest, scopes, created_at, expires_at, revoked_at, used_at';

/** The token of a row of these columns. */
export function tokenOf(row: readonly unknown[]): StoredToken {
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

/** Maximum number of events that a step removes by their age, and as many by their number. */
export const PRUNE_WINDOW = 500;

/** An event as it is stored, in the order of the columns at, action, principal, type, data. */
type AuditRow = readonly [at: number, action: number, principal: string, type: string, data: string];

export function rowOf({ at, isAction, principal, type, data }: AuditEvent): AuditRow {
  return [at, isAction ? 1 : 0, principal, type, JSON.stringify(data)];
}

export function eventOf([at, action, principal, type, data]: readonly unknown[]): AuditEvent {
  return {
    at: Number(at),
    isAction: Number(action) === 1,
    principal: String(principal),
    type: String(type),
    data: JSON.parse(String(data)) as AuditData,
  };
}
