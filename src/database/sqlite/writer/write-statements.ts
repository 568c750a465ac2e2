import { SUSPECT_DEATHS } from '../../../inbox/deaths.ts';
import { WAITING_TARGETS } from '../../inbox-sql.ts';
import { ADD_ZONES, COUNT_TAIL } from '../inbox/delivery-zones.ts';

/** The highest `seq` ever used. */
export const HIGHEST = `max(coalesce((SELECT max(seq) FROM deliveries), 0),
      coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'deliveries'), 0))`;

const append = (columns: string, values: string) => `
    INSERT INTO deliveries (${columns}id, source, event, data_pointer, content_type, body, received_at, dedup_key)
    VALUES (${values}?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (source, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING`;

/** Whether the owner of a job whose lease has ended is another than ?1; then its process has died, or stood still. */
const DIED = '(owner IS NOT NULL AND owner <> ?1)';
/** The deaths of the job with the one that its claim finds out. */
const DEATHS = `deaths + ${DIED}`;

// Of the jobs with one order key only the first open one is claimable, and only while none of them is leased: a reopened
// job can precede a leased one. Leased jobs are few; open jobs with one key can be many. What the owner is still running
// (?6) is leased, whatever the time. The bodies are bounded by ?7, but for the first one.
const claim = (index: string, condition: string) => `
    UPDATE jobs SET owner = ?1, due_at = ?2, attempts = attempts + NOT ${DIED}, deaths = ${DEATHS}
    WHERE seq IN (SELECT seq FROM (
      SELECT seq, row_number() OVER oldest AS nth, sum(bytes) OVER oldest AS total FROM (
      SELECT seq, due_at, (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = due.delivery) AS bytes
      FROM jobs AS due ${index}
      WHERE target = ?3 AND status = 'open' AND due_at <= ?4 AND ${condition}
        AND (owner IS NULL OR seq NOT IN (SELECT value FROM json_each(?6)))
        AND (order_key IS NULL OR (
          NOT EXISTS (
            SELECT 1 FROM jobs AS earlier
            WHERE earlier.target = due.target AND earlier.order_key = due.order_key
              AND earlier.status = 'open' AND earlier.seq < due.seq)
          AND NOT EXISTS (
            SELECT 1 FROM jobs AS leased INDEXED BY jobs_held
            WHERE leased.owner IS NOT NULL AND leased.status = 'open'
              AND (leased.due_at > ?4 OR leased.seq IN (SELECT value FROM json_each(?6)))
              AND leased.target = due.target AND leased.order_key = due.order_key)))
      ORDER BY due_at, seq LIMIT ?5)
      WINDOW oldest AS (ORDER BY due_at, seq ROWS UNBOUNDED PRECEDING))
      WHERE nth = 1 OR total <= ?7)
    RETURNING seq, attempts, deaths, delivery`;

/** The claim that an outcome belongs to. */
const FENCE = 'seq = ? AND owner = ? AND attempts = ? AND deaths = ?';

/**
 * All statements that write, by name; the writing connection prepares each once. RETURNING costs SQLite a temporary table
 * per run, so frequent statements do without: BatchExecutor derives a row from their change count.
 */
export const WRITES = {
  createUser: 'INSERT INTO users (name, email) VALUES (?, ?)',
  updateUser: 'UPDATE users SET name = ?, email = ? WHERE id = ? RETURNING id',
  removeUser: 'DELETE FROM users WHERE id = ? RETURNING id',

  appendDelivery: append('', ''),
  // In place of an append, until one has stored a delivery since the last prune: continues after the highest `seq` ever used.
  appendAfterPrune: append('seq, ', `${HIGHEST} + 1, `),
  // Follows an append in the same write; adds nothing when that found a duplicate.
  addJobs: `
    INSERT INTO jobs (delivery, due_at, target, order_key)
    SELECT last_insert_rowid(), ?, value ->> 0, value ->> 1 FROM json_each(?) WHERE changes() > 0
    RETURNING seq`,
  reviveDuplicate: `
    UPDATE jobs SET status = 'open', attempts = 0, deaths = 0, due_at = ?, owner = NULL, finished_at = NULL
    WHERE status = 'dead' AND delivery = (SELECT seq FROM deliveries WHERE source = ? AND dedup_key = ?)
    RETURNING seq`,

  claimJobs: claim('', `${DEATHS} < ${SUSPECT_DEATHS}`),
  claimSuspects: claim('INDEXED BY jobs_suspect', `deaths > 0 AND ${DEATHS} >= ${SUSPECT_DEATHS}`),
  renewLeases: `
    UPDATE jobs SET due_at = ?
    WHERE owner = ? AND status = 'open' AND seq IN (SELECT value FROM json_each(?)) RETURNING seq`,
  finishJob: `
    UPDATE jobs SET status = ?, error = ?, finished_at = ?, owner = NULL
    WHERE ${FENCE}`,
  retryJob: `
    UPDATE jobs SET due_at = ?, error = ?, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  releaseJob: `
    UPDATE jobs SET due_at = ?, attempts = attempts - 1, owner = NULL
    WHERE ${FENCE} RETURNING seq`,
  recordDeath: `
    UPDATE jobs SET due_at = ?, attempts = attempts - 1, deaths = deaths + 1, owner = NULL
    WHERE ${FENCE} RETURNING seq`,

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
    UPDATE jobs SET status = 'open', attempts = 0, deaths = 0, due_at = ?, error = NULL, finished_at = NULL
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

  countTail: COUNT_TAIL,
  addZones: ADD_ZONES,
} as const;

/** The name of a write; `prune` is a step of retention, of several statements. */
export type WriteName = keyof typeof WRITES | 'prune';
