import { PAGE_BYTES, type UserFormat } from '../../relations/pages.ts';
import { USERS_STATE } from './user-lists.ts';

/** A user as JSON text. Concatenated, because json_build_object inserts spaces. */
const USER_JSON = `'{"id":' || id || ',"name":' || to_json(name)::text || ',"email":' || to_json(email)::text || '}'`;

export const READ = { name: 'user-read', text: `SELECT ${USER_JSON}, version FROM users WHERE id = $1` };
export const STATE = { name: 'user-state', text: `SELECT ${USERS_STATE}` };
/** The users of a page and the number of examined rows, which include users that exceed its bytes. */
const pageAs = (format: UserFormat, written: string) => ({
  name: `user-page-${format}`,
  text: `
    SELECT count(*) FILTER (WHERE before < ${PAGE_BYTES}), max(id) FILTER (WHERE before < ${PAGE_BYTES}),
      string_agg(text, '' ORDER BY id) FILTER (WHERE before < ${PAGE_BYTES}),
      ${USERS_STATE}, count(*)
    FROM (
      SELECT id, text, coalesce(sum(octet_length(text)) OVER behind, 0) AS before
      FROM (
        SELECT id, ${written} AS text FROM users WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) AS written
      WINDOW behind AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS page`,
});
export const PAGE = {
  json: pageAs('json', `',' || ${USER_JSON}`),
  ndjson: pageAs('ndjson', `${USER_JSON} || chr(10)`),
  csv: pageAs(
    'csv',
    `id || ',"' || replace(name, '"', '""') || '","' || replace(email, '"', '""') || '"' || chr(13) || chr(10)`,
  ),
};
export const LAST_ID = { name: 'user-last-id', text: 'SELECT max(id) FROM users' };

export const CREATE = {
  name: 'user-create',
  text: `
    INSERT INTO users (name, email, version)
    SELECT name, email, version
    FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (name, email, version, nth) ORDER BY nth
    RETURNING id`,
};
// Locks rows in the order of their ids, so that concurrent updates cannot deadlock.
export const UPDATE = {
  name: 'user-update',
  text: `
    WITH given AS (
      SELECT DISTINCT ON (id) id, name, email
      FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS given (id, name, email, nth)
      ORDER BY id, nth DESC),
    locked AS (SELECT id FROM users WHERE id = ANY ($1) ORDER BY id FOR UPDATE)
    UPDATE users SET name = given.name, email = given.email
    FROM given JOIN locked USING (id) WHERE users.id = given.id RETURNING users.id`,
};
export const REMOVE = {
  name: 'user-remove',
  text: `
    WITH locked AS (SELECT id FROM users WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE)
    DELETE FROM users USING locked WHERE users.id = locked.id RETURNING users.id`,
};

/** The condition of a write: requires one of the given versions, and a version below a bound. */
const MEANT = '($2::bigint[] IS NULL OR version = ANY ($2)) AND version < $3';
export const CHANGE = {
  name: 'user-change',
  text: `
    UPDATE users SET name = coalesce($4::text, name), email = coalesce($5::text, email)
    WHERE id = $1 AND ${MEANT} RETURNING version, ${USER_JSON}`,
};
export const REMOVE_IF = {
  name: 'user-remove-if',
  text: `DELETE FROM users WHERE id = $1 AND ${MEANT} RETURNING id`,
};
/**
 * An idempotent create. The lock shows whether another process is creating with the same key; the key is
 * taken unless an outcome is kept for it, in which case nothing is created.
 */
export const CREATE_ONCE = {
  name: 'user-create-once',
  text: `
    WITH locked AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS is_free),
    claimed AS (
      INSERT INTO idempotency_keys (key, fingerprint, user_id, version, expires_at)
      SELECT $1, $2, nextval(pg_get_serial_sequence('users', 'id')), $3::bigint, $4::bigint FROM locked WHERE is_free
      ON CONFLICT (key) DO UPDATE
      SET fingerprint = excluded.fingerprint, user_id = excluded.user_id, version = excluded.version,
        expires_at = excluded.expires_at
      WHERE idempotency_keys.expires_at <= excluded.version
      RETURNING user_id, version),
    created AS (
      INSERT INTO users (id, name, email, version) OVERRIDING SYSTEM VALUE
      SELECT user_id, $5::text, $6::text, version FROM claimed RETURNING id, version)
    SELECT is_free, created.id, created.version FROM locked LEFT JOIN created ON true`,
};
export const READ_KEY = {
  name: 'idempotency-key',
  text: 'SELECT fingerprint, user_id, version FROM idempotency_keys WHERE key = $1',
};
/** Removes several expired keys for each new one, so that they cannot accumulate. */
export const EXPIRE_KEYS = {
  name: 'idempotency-expire',
  text: `
    DELETE FROM idempotency_keys WHERE key IN (
      SELECT key FROM idempotency_keys WHERE expires_at <= $1
      ORDER BY expires_at LIMIT 8 FOR UPDATE SKIP LOCKED)`,
};
