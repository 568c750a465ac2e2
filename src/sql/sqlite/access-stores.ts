import type { DatabaseSync } from 'node:sqlite';
import { type ApiTokens, MAX_TOKENS, TOKEN_COLUMNS, tokenOf } from '../access-rows.ts';
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

/** The tokens in SQLite. */
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
