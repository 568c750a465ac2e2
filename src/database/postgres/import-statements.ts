/**
 * Moves the recorded position of an import; fails unless it is the expected one, because the column takes no NULL.
 */
const MOVE =
  'UPDATE imports SET line = CASE WHEN line = $2 THEN $3::bigint END, moved_at = $4::bigint, digest = $5 WHERE key = $1';
export const MOVE_IMPORT = { name: 'import-move', text: MOVE };
/** Stores users in order and gives their ids, with commas between; nothing for one whose email another user has. */
export const IMPORT = {
  name: 'user-import',
  text: `
    WITH given AS MATERIALIZED (
      SELECT nth, nextval('users_id_seq') AS id, name, email
      FROM (SELECT * FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (name, email, nth) ORDER BY nth) AS given),
    stored AS (
      INSERT INTO users (id, name, email, version) OVERRIDING SYSTEM VALUE
      SELECT id, name, email, $3::bigint FROM given ORDER BY nth
      ON CONFLICT DO NOTHING RETURNING id)
    SELECT string_agg(coalesce(stored.id::text, ''), ',' ORDER BY nth) FROM given LEFT JOIN stored USING (id)`,
};
export const BEGIN_IMPORT = {
  name: 'import-begin',
  text: 'INSERT INTO imports (key, line, moved_at) VALUES ($1, 0, $2) ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING line, digest',
};
export const EXPIRE_IMPORTS = { name: 'import-expire', text: 'DELETE FROM imports WHERE moved_at < $1' };
/** The first of some emails that a user has, from 1 on. */
export const FIRST_TAKEN = {
  name: 'user-first-taken',
  text: `
    SELECT min(nth) FROM unnest($1::text[]) WITH ORDINALITY AS given (email, nth)
    WHERE EXISTS (SELECT FROM users WHERE lower(users.email COLLATE "C") = lower(given.email COLLATE "C"))`,
};
