import { QUARANTINE_CRASHES } from '../../inbox/delivery.ts';
import { HEAD_START, WAITING_TARGETS } from '../inbox-sql.ts';
import { AUDIT_WRITES, TOKEN_WRITES } from '../sqlite/access-stores.ts';
import { EVENT_WRITES } from '../sqlite/user-event-log.ts';
import { MOVE_CHECKPOINT } from '../sqlite-inbox/checkpoints.ts';
import { ADD_ZONES, COUNT_TAIL } from '../sqlite-inbox/delivery-zones.ts';
import { FORGET_KEYS } from '../sqlite-inbox/prune.ts';
import { RELAY_WRITES } from '../sqlite-inbox/relay.ts';
import { KEEP_SUCCESSES, RECORD_ATTEMPT, TRIM_ATTEMPTS } from '../sqlite-inbox/settle.ts';

/** The highest `seq` ever used. */
export const HIGHEST = `max(coalesce((SELECT max(seq) FROM deliveries), 0),
      coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'deliveries'), 0))`;

const append = (columns: string, values: string, rows = (all: string) => `VALUES (${all})`) => `
    INSERT INTO deliveries (${columns}id, source, event, data_pointer, content_type, body, received_at, dedup_key, headers, trace, sender_event)
    ${rows(`${values}?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11`)}
    ON CONFLICT (source, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING`;

/** A delivery with a remembered key is a duplicate of a removed one. The lookup costs a few microseconds. */
const unlessRemembered =
  (condition = 'true') =>
  (values: string) =>
    `
    SELECT ${values}
    WHERE ${condition} AND NOT EXISTS (SELECT 1 FROM remembered_keys WHERE source = ?2 AND dedup_key = ?8)`;

/**
 * Whether a job whose lease has ended belonged to another owner than ?1, whose process must have crashed or
 * stalled.
 */
const CRASHED = '(owner IS NOT NULL AND owner <> ?1)';
/** The crashes of a job, including one found by this claim. */
const CRASHES = `crashes + ${CRASHED}`;

// Claims due jobs that are not blocked and that the owner is not still running (?6). ?7 bounds the bodies,
// except the first. The limit is written `?5 + 0` because a bare parameter is part of the plan: SQLite would
// prepare the statement again for each run, at ten times the cost of a small claim.
const claim = (index: string, condition: string) => `
    UPDATE jobs SET owner = ?1, claimed_at = ?4, due_at = ?2, attempts = attempts + NOT ${CRASHED}, crashes = ${CRASHES}
    WHERE seq IN (SELECT seq FROM (
      SELECT seq, row_number() OVER oldest AS nth, sum(bytes) OVER oldest AS total FROM (
      SELECT seq, due_at, (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = due.delivery) AS bytes
      FROM jobs AS due INDEXED BY ${index}
      WHERE target = ?3 AND status = 'open' AND NOT blocked AND due_at <= ?4 AND ${condition}
        AND (owner IS NULL OR seq NOT IN (SELECT value FROM json_each(?6)))
      ORDER BY due_at, seq LIMIT ?5 + 0)
      WINDOW oldest AS (ORDER BY due_at, seq ROWS UNBOUNDED PRECEDING))
      WHERE nth = 1 OR total <= ?7)
    RETURNING seq, attempts, crashes, delivery, order_key IS NOT NULL, priority`;

/** Whether a new job, a row of json_each, has to wait behind an unblocked job with its order key. */
const IS_BLOCKED = `(value ->> 1) IS NOT NULL AND EXISTS (
      SELECT 1 FROM jobs AS head
      WHERE head.target = value ->> 0 AND head.order_key = value ->> 1 AND head.status = 'open' AND NOT head.blocked)`;

const JOB = 'INSERT INTO jobs (delivery, due_at, target, owner, claimed_at, attempts)';

/** Matches only the claim that an outcome belongs to. */
const FENCE = 'seq = ? AND owner = ? AND attempts = ? AND crashes = ?';

/**
 * All write statements by name; the writing connection prepares each once. RETURNING costs SQLite a temporary
 * table per run, so frequent statements avoid it: BatchExecutor derives a row from their change count.
 */
export const WRITES = {
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
  ...EVENT_WRITES,
  ...RELAY_WRITES,

  appendDelivery: append('', ''),
  appendKeyed: append('', '', unlessRemembered()),
  // Used instead of an append until a delivery was stored since the last prune: continues after the highest
  // `seq` ever used.
  appendAfterPrune: append('seq, ', `${HIGHEST} + 1, `),
  appendKeyedAfterPrune: append('seq, ', `${HIGHEST} + 1, `, unlessRemembered()),
  // Follows a step in the same write; adds nothing if that step changed nothing.
  appendIfChanged: append('seq, ', `${HIGHEST} + 1, `, unlessRemembered('changes() > 0')),
  // A job without rules follows an append in the same write, and further jobs follow it. Each adds nothing if
  // the previous step added nothing, because the delivery was a duplicate. With an owner, the job is stored
  // as claimed.
  addJob: `${JOB} SELECT last_insert_rowid(), ?, ?, ?, ?, ? WHERE changes() > 0`,
  addFurtherJob: `${JOB} SELECT delivery, ?, ?, ?, ?, ? FROM jobs WHERE seq = last_insert_rowid() AND changes() > 0`,
  addRuledJobs: `
    INSERT INTO jobs (delivery, due_at, target, order_key, blocked, run_at, priority)
    SELECT last_insert_rowid(), value ->> 2, value ->> 0, value ->> 1, ${IS_BLOCKED}, value ->> 3, value ->> 4
    FROM json_each(?) WHERE changes() > 0
    RETURNING seq`,
  reviveDuplicate: `
    UPDATE jobs SET status = 'open', attempts = 0, crashes = 0, due_at = ? - ${HEAD_START}, run_at = NULL, owner = NULL,
      finished_at = NULL
    WHERE status = 'dead' AND delivery = (SELECT seq FROM deliveries WHERE source = ? AND dedup_key = ?)
    RETURNING seq`,

  ...TOKEN_WRITES,
  moveCheckpoint: MOVE_CHECKPOINT,
  takeEnqueued: 'DELETE FROM enqueued WHERE seq = ? AND id = ?',
  forgetKeys: FORGET_KEYS,

  claimJobs: claim('jobs_due', `${CRASHES} < ${QUARANTINE_CRASHES}`),
  claimQuarantined: claim('jobs_quarantined', `crashes > 0 AND ${CRASHES} >= ${QUARANTINE_CRASHES}`),
  renewLeases: `
    UPDATE jobs SET due_at = ?
    WHERE owner = ? AND status = 'open' AND seq IN (SELECT value FROM json_each(?)) RETURNING seq`,
  finishJob: `
    UPDATE jobs SET status = ?, error = ?, finished_at = ?, duration = ?, ended_by = owner, owner = NULL
    WHERE ${FENCE}`,
  // Follows the end of job ?3 in the same write; if that was recorded, claims the next job with its order
  // key.
  claimNext: `
    UPDATE jobs SET owner = ?1, claimed_at = ?4, due_at = ?2, attempts = attempts + 1
    WHERE changes() > 0 AND seq = (
      SELECT next.seq FROM jobs AS ended JOIN jobs AS next INDEXED BY jobs_head USING (target, order_key)
      WHERE ended.seq = ?3 AND next.status = 'open' AND NOT next.blocked AND next.order_key IS NOT NULL)
      AND owner IS NULL AND due_at <= ?4 AND crashes < ${QUARANTINE_CRASHES}
      AND (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = jobs.delivery) <= ?5
    RETURNING seq, attempts, crashes, delivery, order_key IS NOT NULL`,
  retryJob: `
    UPDATE jobs SET due_at = ?, error = ?, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  releaseJob: `
    UPDATE jobs SET due_at = ? - ${HEAD_START}, attempts = attempts - 1, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  recordCrash: `
    UPDATE jobs SET due_at = ? - ${HEAD_START}, attempts = attempts - 1, crashes = crashes + 1, owner = NULL
    WHERE ${FENCE} RETURNING seq`,

  recordAttempt: RECORD_ATTEMPT,
  trimAttempts: TRIM_ATTEMPTS,
  keepSuccesses: KEEP_SUCCESSES,

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
      WHERE targets.seen_at <= ?3 AND jobs.status = 'open' AND NOT blocked AND jobs.due_at <= ?3
      UNION ALL
      SELECT jobs.seq FROM targets JOIN jobs ON jobs.target = targets.name
      WHERE targets.seen_at <= ?3 AND jobs.status = 'open' AND order_key IS NOT NULL AND blocked AND jobs.due_at <= ?3
      LIMIT ?4 + 0)
    RETURNING target`,

  // Before a replay: gives the job of a former handler to the current one.
  replaceTarget: `
    UPDATE jobs SET target = ?3, order_key = ?4
    WHERE delivery = ?1 AND target = ?2
      AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.delivery = jobs.delivery AND other.status = 'open')`,
  replayJobs: `
    UPDATE jobs SET status = 'open', attempts = 0, crashes = 0, due_at = ? - ${HEAD_START}, run_at = NULL, error = NULL,
      finished_at = NULL, duration = NULL, ended_by = NULL
    WHERE delivery = ?
      AND target IN (SELECT value ->> 0 FROM json_each(?))
      AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.delivery = jobs.delivery AND other.status = 'open')
    RETURNING seq`,
  replayUnhandled: `
    INSERT INTO jobs (delivery, due_at, target, order_key, blocked)
    SELECT deliveries.seq, ?, value ->> 0, value ->> 1, ${IS_BLOCKED} FROM deliveries, json_each(?)
    WHERE deliveries.seq = ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq)
    RETURNING seq`,
  discardJobs: `
    UPDATE jobs SET status = 'discarded', finished_at = ?, owner = NULL
    WHERE delivery = ? AND status IN ('open', 'dead') RETURNING seq`,

  ...AUDIT_WRITES,

  countTail: COUNT_TAIL,
  addZones: ADD_ZONES,
} as const;

/** The appends, each with its replacement after a prune. */
export const AFTER_PRUNE: Partial<Record<WriteName, WriteName>> = {
  appendDelivery: 'appendAfterPrune',
  appendKeyed: 'appendKeyedAfterPrune',
};

/** The name of a write; `prune` is a step of retention that runs several statements. */
export type WriteName = keyof typeof WRITES | 'prune';
