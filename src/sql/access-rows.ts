import type { AuditData, AuditEvent } from '../access/audit.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';

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

export const TOKEN_COLUMNS = 'name, digest, scopes, created_at, expires_at, revoked_at, used_at';

/** Reads a token from a row of `TOKEN_COLUMNS`. */
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

/** Maximum number of events that a step removes by age, and again by count. */
export const PRUNE_WINDOW = 500;

/** A stored event: the columns at, action, principal, type, data. */
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
