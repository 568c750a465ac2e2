import type { UserFormat } from '../../relations/lists.ts';
import { type Dialect, queries } from './sql.ts';

// Apart from the stores, because the writer thread of SQLite loads it.

/**
 * Identifies the state of all users. PostgreSQL counts the changes and knows the time of the last one; SQLite,
 * whose creates count nothing, adds the number of creates. The time distinguishes it from states of another
 * file or a backup.
 */
export const usersState = ({ either }: Dialect) =>
  either(
    `(SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'users'), 0) || '.' || n || '.' ||
  max(changed_at, coalesce((SELECT version FROM users ORDER BY id DESC LIMIT 1), 0)) FROM user_changes)`,
    `(SELECT sum(n) || '.' || max(changed_at) FROM user_changes)`,
  );

/** The text of a row of users in each format. */
export const userTexts = ({ userJson }: Dialect): Readonly<Record<UserFormat, string>> => ({
  json: `',' || ${userJson}`,
  ndjson: `${userJson} || '\n'`,
  csv: `id || ',"' || replace(name, '"', '""') || '","' || replace(email, '"', '""') || '"\r\n'`,
});

export const USER_QUERIES = queries('users', (sql) => {
  // Requires one of the given versions, and a version below a bound.
  const meant = `(${sql.isIn('version', '$2', 'bigint')} OR $2 IS NULL) AND version < $3`;
  return {
    state: `SELECT ${usersState(sql)} AS state`,
    lastId: 'SELECT id FROM users ORDER BY id DESC LIMIT 1',
    // The secret that signs the cursors of lists.
    cursorKey: `SELECT bytes FROM secrets WHERE name = 'cursor'`,
    exists: 'SELECT id FROM users WHERE id = $1',
    // The version is the server's time on PostgreSQL, where a trigger sets it.
    change: `
      UPDATE users SET name = coalesce(CAST($4 AS text), name), email = coalesce(CAST($5 AS text), email),
        version = ${sql.greatest('version + 1', 'CAST($6 AS bigint)')}
      WHERE id = $1 AND ${meant} RETURNING version, ${sql.userJson}`,
    removeIf: `DELETE FROM users WHERE id = $1 AND ${meant} RETURNING id`,
    // The index, from 0, of the first email that is already taken.
    firstTaken: {
      long: `
        SELECT min(nth) FROM ${sql.rows('$1', { email: 'text' })} AS given
        WHERE EXISTS (SELECT 1 FROM users WHERE ${sql.folded('users.email')} = ${sql.folded('given.email')})`,
    },
    expireImports: 'DELETE FROM imports WHERE moved_at < $1',
    beginImport: `
      INSERT INTO imports (key, line, moved_at) VALUES ($1, 0, $2)
      ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING line, digest`,
    // If the position is not the expected one, CASE gives NULL, which the column rejects; the whole write then
    // fails.
    moveImport: `
      UPDATE imports SET line = CASE WHEN line = $2 THEN CAST($3 AS bigint) END, moved_at = $4, digest = $5
      WHERE key = $1`,
    // An idempotent create: takes the key unless an outcome is kept for it or another process is creating
    // with it.
    claimKey: `
      INSERT INTO idempotency_keys (key, fingerprint, user_id, version, expires_at)
      SELECT CAST($1 AS text), CAST($2 AS text), 0, CAST($3 AS bigint), CAST($4 AS bigint)
      WHERE ${sql.tryLock('$1')}
      ON CONFLICT (key) DO UPDATE
      SET fingerprint = excluded.fingerprint, user_id = 0, version = excluded.version, expires_at = excluded.expires_at
      WHERE idempotency_keys.expires_at <= excluded.version`,
    // Creates the user, if this write has taken the key.
    createForKey: `
      INSERT INTO users (name, email, version)
      SELECT CAST($2 AS text), CAST($3 AS text), version FROM idempotency_keys WHERE key = $1 AND user_id = 0`,
    // Records the id of the user, if this write has taken the key. Returns the outcome, or no row if another
    // process is creating with the key. The sum keeps the index of times from serving it.
    noteForKey: `
      UPDATE idempotency_keys SET user_id = CASE WHEN user_id > 0 THEN user_id
        ELSE ${sql.either('last_insert_rowid()', `currval(pg_get_serial_sequence('users', 'id'))`)} END
      WHERE key = $1 AND expires_at + 0 > $2 RETURNING fingerprint, user_id, version`,
    // Removes several expired keys for each new one, so that they cannot accumulate.
    expireKeys: `
      DELETE FROM idempotency_keys
      WHERE ${sql.among('key', `SELECT key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT 8 ${sql.lockFree}`)}`,
  };
});
