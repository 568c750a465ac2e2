import { type ApiTokens, MAX_TOKENS, TOKEN_COLUMNS, tokenOf } from '../api-tokens.ts';
import type { DatabaseObserver } from '../observer.ts';
import type { Server } from './pool/server.ts';
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

/** The tokens in PostgreSQL. */
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
