import { APPEND_WRITES } from '../sqlite-inbox/append.ts';
import { ADD_ZONES, COUNT_TAIL } from '../sqlite-inbox/delivery-zones.ts';
import { inboxPrograms } from '../sqlite-inbox/pruner.ts';
import { JOB_WRITES } from '../sqlite-inbox/settle.ts';
import type { WriteRegistry } from '../sqlite-writer/batch.ts';
import { SHARED_QUERIES } from '../stores/queries.ts';
import { EVENT_WRITES } from './user-event-log.ts';

/** The statements that change users. */
const USER_WRITES = {
  createUser: 'INSERT INTO users (name, email, version) VALUES (?, ?, ?)',
  updateUser: `
    UPDATE users SET name = ?1, email = ?2, version = max(version + 1, ?4) WHERE id = ?3 RETURNING id`,
  removeUser: 'DELETE FROM users WHERE id = ? RETURNING id',
  // Conditional: requires one of the given versions, and a version below a bound.
  changeUser: `
    UPDATE users SET name = coalesce(?1, name), email = coalesce(?2, email), version = max(version + 1, ?4)
    WHERE id = ?3 AND (?5 IS NULL OR version IN (SELECT value FROM json_each(?5))) AND version < ?6
    RETURNING version, json_object('id', id, 'name', name, 'email', email)`,
  removeUserIf: `
    DELETE FROM users
    WHERE id = ?1 AND (?2 IS NULL OR version IN (SELECT value FROM json_each(?2))) AND version < ?3
    RETURNING id`,
  // An idempotent create: takes the key unless an outcome is kept for it; if taken, creates the user and
  // records its id; then returns the kept outcome.
  claimKey: `
    INSERT INTO idempotency_keys (key, fingerprint, user_id, version, expires_at) VALUES (?1, ?2, 0, ?3, ?4)
    ON CONFLICT (key) DO UPDATE
    SET fingerprint = excluded.fingerprint, version = excluded.version, expires_at = excluded.expires_at
    WHERE idempotency_keys.expires_at <= excluded.version`,
  createForKey: 'INSERT INTO users (name, email, version) SELECT ?, ?, ? WHERE changes() > 0',
  noteForKey: 'UPDATE idempotency_keys SET user_id = last_insert_rowid() WHERE key = ? AND changes() > 0',
  readKey: 'SELECT fingerprint, user_id, version FROM idempotency_keys WHERE key = ?',
  // Removes several expired keys for each new one, so that they cannot accumulate.
  expireKeys: `
    DELETE FROM idempotency_keys
    WHERE key IN (SELECT key FROM idempotency_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT 8)`,
  // Skips a user whose email is already taken.
  importUser: 'INSERT INTO users (name, email, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  beginImport: 'INSERT INTO imports (key, line, moved_at) VALUES (?, 0, ?) ON CONFLICT (key) DO NOTHING',
  // If the position is not the expected one, CASE gives NULL, which the column rejects; the whole write then
  // fails.
  moveImport:
    'UPDATE imports SET line = CASE WHEN line = ?2 THEN ?3 END, moved_at = ?4, digest = ?5 WHERE key = ?1',
  expireImports: 'DELETE FROM imports WHERE moved_at < ?',
  findUser: 'SELECT id FROM users WHERE id = ?',
} as const;

/** What the writing connection of a database can run. */
export const SQLITE_WRITES: WriteRegistry = {
  statements: { ...USER_WRITES, ...APPEND_WRITES, ...JOB_WRITES },
  rare: {
    ...EVENT_WRITES,
    ...Object.fromEntries(SHARED_QUERIES.map(({ name, sqlite }) => [name, sqlite])),
    countTail: COUNT_TAIL,
    addZones: ADD_ZONES,
  },
  programs: inboxPrograms,
  // One row of each kind that the doors store, on the pages where their next rows would go.
  checks: [
    `INSERT INTO users (name, email) VALUES ('', '')`,
    `INSERT INTO deliveries (id, source, data_pointer, body, received_at, dedup_key)
     VALUES ('', '', '', x'', 0, lower(hex(randomblob(16))))`,
    `INSERT INTO jobs (delivery, due_at, target)
     VALUES (last_insert_rowid(), 0, coalesce((SELECT target FROM jobs ORDER BY seq DESC LIMIT 1), ''))`,
  ],
};
