import { WAITING_TARGETS } from '../../inbox-sql.ts';
import { ADD_ZONES, PRUNE_ZONES } from '../inbox/delivery-zones.ts';
import { EVENT_WRITES } from '../user-event-log.ts';

/** The highest `seq` ever used. */
const HIGHEST = `max(coalesce((SELECT max(seq) FROM deliveries), 0),
      coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'deliveries'), 0))`;

const append = (columns: string, values: string) => `
    INSERT INTO deliveries (${columns}id, source, event, data_pointer, content_type, body, received_at, dedup_key)
    VALUES (${values}?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (source, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING`;

/**
 * All statements that write, by name; the writing connection prepares each once. RETURNING costs SQLite a temporary table
 * per run, so frequent statements do without: BatchExecutor derives a row from their change count.
 */
export const WRITES = {
  createUser: 'INSERT INTO users (name, email, version) VALUES (?, ?, ?)',
  updateUser: `
    UPDATE users SET name = ?1, email = ?2, version = max(version + 1, ?4) WHERE id = ?3 RETURNING id`,
  removeUser: 'DELETE FROM users WHERE id = ? RETURNING id',
  // Under a condition: the versions that are meant, and a bound on them.
  changeUser: `
    UPDATE users SET name = coalesce(?1, name), email = coalesce(?2, email), version = max(version + 1, ?4)
    WHERE id = ?3 AND (?5 IS NULL OR version IN (SELECT value FROM json_each(?5))) AND version < ?6
    RETURNING version, json_object('id', id, 'name', name, 'email', email)`,
  removeUserIf: `
    DELETE FROM users
    WHERE id = ?1 AND (?2 IS NULL OR version IN (SELECT value FROM json_each(?2))) AND version < ?3
    RETURNING id`,
  // A create that counts once: takes the key, unless an outcome is kept for it; creates the user if so; notes its id;
  // then tells what is kept.
  claimKey: `
    INSERT INTO idempotency_keys (key, fingerprint, user_id, version, expires_at) VALUES (?1, ?2, 0, ?3, ?4)
    ON CONFLICT (key) DO UPDATE
    SET fingerprint = excluded.fingerprint, version = excluded.version, expires_at = excluded.expires_at
    WHERE idempotency_keys.expires_at <= excluded.version`,
  createForKey: 'INSERT INTO users (name, email, version) SELECT ?, ?, ? WHERE changes() > 0',
  noteForKey: 'UPDATE idempotency_keys SET user_id = last_insert_rowid() WHERE key = ? AND changes() > 0',
  readKey: 'SELECT fingerprint, user_id, version FROM idempotency_keys WHERE key = ?',
  // Each new key makes room for more than itself.
  expireKeys: `
    DELETE FROM idempotency_keys
    WHERE key IN (SELECT key FROM idempotency_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT 8)`,
  findUser: 'SELECT id FROM users WHERE id = ?',
  ...EVENT_WRITES,

  appendDelivery: append('', ''),
  // For the first append after a prune: continues after the highest `seq` ever used.
  appendAfterPrune: append('seq, ', `${HIGHEST} + 1, `),
  // Follows an append in the same write; adds nothing when that found a duplicate.
  addJobs: `
    INSERT INTO jobs (delivery, due_at, target, order_key)
    SELECT last_insert_rowid(), ?, value ->> 0, value ->> 1 FROM json_each(?) WHERE changes() > 0
    RETURNING seq`,
  reviveDuplicate: `
    UPDATE jobs SET status = 'open', attempts = 0, due_at = ?, owner = NULL, finished_at = NULL
    WHERE status = 'dead' AND delivery = (SELECT seq FROM deliveries WHERE source = ? AND dedup_key = ?)
    RETURNING seq`,

  // Of the jobs with one order key only the first open one is claimable, and only while none of them is leased: a
  // reopened job can precede a leased one. Leased jobs are few; open jobs with one key can be many.
  claimJobs: `
    UPDATE jobs SET owner = ?1, due_at = ?2, attempts = attempts + 1
    WHERE seq IN (
      SELECT seq FROM jobs AS due
      WHERE target = ?3 AND status = 'open' AND due_at <= ?4
        AND (order_key IS NULL OR (
          NOT EXISTS (
            SELECT 1 FROM jobs AS earlier
            WHERE earlier.target = due.target AND earlier.order_key = due.order_key
              AND earlier.status = 'open' AND earlier.seq < due.seq)
          AND NOT EXISTS (
            SELECT 1 FROM jobs AS leased INDEXED BY jobs_held
            WHERE leased.owner IS NOT NULL AND leased.status = 'open' AND leased.due_at > ?4
              AND leased.target = due.target AND leased.order_key = due.order_key)))
      ORDER BY due_at, seq LIMIT ?5)
    RETURNING seq, attempts, delivery`,
  renewLeases: `
    UPDATE jobs SET due_at = ?
    WHERE owner = ? AND status = 'open' AND seq IN (SELECT value FROM json_each(?)) RETURNING seq`,
  finishJob: `
    UPDATE jobs SET status = ?, error = ?, finished_at = ?, owner = NULL
    WHERE seq = ? AND owner = ? AND attempts = ?`,
  retryJob: `
    UPDATE jobs SET due_at = ?, error = ?, owner = NULL
    WHERE seq = ? AND owner = ? AND attempts = ? RETURNING seq`,
  releaseJob: `
    UPDATE jobs SET due_at = ?, attempts = attempts - 1, owner = NULL
    WHERE seq = ? AND owner = ? AND attempts = ? RETURNING seq`,

  recordHeartbeat: `
    INSERT INTO targets (name, seen_at) SELECT DISTINCT value, ?1 FROM json_each(?2) WHERE true
    ON CONFLICT (name) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)`,
  registerWaitingTargets: `
    ${WAITING_TARGETS}
    INSERT INTO targets (name, seen_at) SELECT target, ? FROM waiting WHERE target IS NOT NULL
    ON CONFLICT (name) DO NOTHING`,
  expireOrphans: `
    UPDATE jobs SET status = 'dead', error = ?1, finished_at = ?2, owner = NULL
    WHERE seq IN (
      SELECT jobs.seq FROM targets JOIN jobs ON jobs.target = targets.name
      WHERE targets.seen_at <= ?3 AND jobs.status = 'open' AND jobs.due_at <= ?3 LIMIT ?4)
    RETURNING target`,

  replayJobs: `
    UPDATE jobs SET status = 'open', attempts = 0, due_at = ?, error = NULL, finished_at = NULL
    WHERE delivery = ?
      AND target IN (SELECT value ->> 0 FROM json_each(?))
      AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.delivery = jobs.delivery AND other.status = 'open')
    RETURNING seq`,
  replayUnhandled: `
    INSERT INTO jobs (delivery, due_at, target, order_key)
    SELECT deliveries.seq, ?, value ->> 0, value ->> 1 FROM deliveries, json_each(?)
    WHERE deliveries.seq = ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq)
    RETURNING seq`,
  discardJobs: `
    UPDATE jobs SET status = 'discarded', finished_at = ?, owner = NULL
    WHERE delivery = ? AND status IN ('open', 'dead') RETURNING seq`,

  keepHighest: `UPDATE sqlite_sequence SET seq = ${HIGHEST} WHERE name = 'deliveries'`,
  pruneJobs: `
    DELETE FROM jobs WHERE delivery IN (SELECT value FROM json_each(?)) AND status <> 'open' RETURNING seq`,
  pruneDeliveries: `
    DELETE FROM deliveries WHERE seq IN (SELECT value FROM json_each(?))
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq)
    RETURNING seq`,

  addZones: ADD_ZONES,
  pruneZones: PRUNE_ZONES,
} as const;

export type WriteName = keyof typeof WRITES;
