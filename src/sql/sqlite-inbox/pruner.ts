import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { type PruneRule, rememberedFrom } from '../../inbox/inbox.ts';
import { DELIVERY_BYTES, DELIVERY_OVERHEAD } from '../inbox-sql.ts';
import { type Programs, prepareStep, type RunStep, type Write } from '../sqlite-writer/batch.ts';
import { APPENDS, HIGHEST, REFUSED } from './append.ts';
import { PRUNE_ZONE, SIZE, ZONE_OF } from './delivery-zones.ts';
import { claimSteps, REMOVE_ATTEMPTS } from './settle.ts';

/** A step ends after this time in milliseconds, but examines at least one entry. */
const STEP_TIME = 2;
/** Maximum number of entries that a step examines. */
const WINDOW = 256;

/** Before the delivery `?1` is removed: remembers its dedup key if it was received at or after `?2`. */
const REMEMBER_KEY = `
  INSERT INTO remembered_keys (source, dedup_key, id, received_at)
  SELECT source, dedup_key, id, received_at FROM deliveries
  WHERE seq = ?1 AND dedup_key IS NOT NULL AND received_at >= ?2
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = ?1 AND status = 'dead')
  ON CONFLICT DO NOTHING`;

/** The statements of a step. Each looks up rows by key, or up to `WINDOW` rows from a key on. */
export const PRUNE_STATEMENTS = {
  size: SIZE,
  cursor: 'SELECT at, seq FROM retention_cursors WHERE rule = ?',
  moveCursor: 'UPDATE retention_cursors SET at = ?, seq = ? WHERE rule = ?',
  // Jobs in the order in which they ended, in two queries: for `(finished_at, seq) > (?, ?)` SQLite would
  // scan all entries of the cursor's time. A delivery is removed at the entry of its last job.
  endedThen: `
    SELECT finished_at AS at, seq, delivery FROM jobs
    WHERE finished_at = ?1 AND seq > ?2 ORDER BY seq LIMIT ${WINDOW}`,
  endedLater: `
    SELECT finished_at AS at, seq, delivery FROM jobs
    WHERE finished_at > ?1 AND finished_at < ?2 ORDER BY finished_at, seq LIMIT ${WINDOW}`,
  received: `
    SELECT received_at AS at, seq, seq AS delivery FROM deliveries WHERE seq > ?1 ORDER BY seq LIMIT ${WINDOW}`,
  jobs: `
    SELECT count(*) AS jobs, count(*) FILTER (WHERE status = 'open') AS open,
      count(*) FILTER (WHERE status = 'dead') AS dead, max(finished_at) AS endedAt
    FROM jobs WHERE delivery = ?`,
  bytes: `SELECT ${DELIVERY_BYTES} + ${DELIVERY_OVERHEAD} AS bytes FROM deliveries WHERE seq = ?`,
  keepHighest: `UPDATE sqlite_sequence SET seq = ${HIGHEST} WHERE name = 'deliveries'`,
  rememberKey: REMEMBER_KEY,
  removeAttempts: REMOVE_ATTEMPTS,
  removeJobs: 'DELETE FROM jobs WHERE delivery = ?',
  removeDelivery: 'DELETE FROM deliveries WHERE seq = ?',
  zoneOf: ZONE_OF,
  pruneZone: PRUNE_ZONE,
  shrink: 'UPDATE inbox_size SET bytes = bytes - ? WHERE part = 0',
} as const;

interface Entry {
  readonly at: number;
  readonly seq: number;
  readonly delivery: number;
}
interface Jobs {
  readonly jobs: number;
  readonly open: number;
  readonly dead: number;
  readonly endedAt: number;
}

/** The values of the write `prune` for a rule. */
export function pruneValues(rule: PruneRule): readonly SQLInputValue[] {
  const limit = rule.kind === 'excess' ? rule.maxBytes : rule.kind === 'unhandled' ? rule.now : 0;
  return [rule.kind, rule.before, limit, rememberedFrom(rule)];
}

/** Creates the steps of the inbox that depend on the numbers of deliveries. */
export function inboxPrograms(db: DatabaseSync): Programs {
  const prune = createPruner(db);
  /**
   * Whether SQLite's own numbering of deliveries is correct: a delivery was stored since the last prune.
   * Initially false, because an earlier process may have pruned.
   */
  let continuesNumbers = false;
  const append = ([plain, afterPrune]: readonly [string, string]): RunStep => {
    const [runPlain, runAfterPrune] = [prepareStep(db, plain), prepareStep(db, afterPrune)];
    return (values) => (continuesNumbers ? runPlain(values) : runAfterPrune(values));
  };
  const changes = db.prepare('SELECT changes() AS n');
  const versionOf = db.prepare('SELECT version FROM webhook_tenants WHERE name = ?');
  versionOf.setReturnArrays(true);
  return {
    steps: {
      // Fails the write if the step before it has changed nothing.
      requireChange() {
        if (changes.get()?.n === 0) throw new Error(REFUSED.nothingChanged);
        return [];
      },
      // Fails the write unless the endpoints of the tenant have this version.
      requireVersion([name = null, version]) {
        const [found = 0] = (versionOf.get(name) ?? []) as unknown as readonly unknown[];
        if (found !== version) throw new Error(REFUSED.tenantChanged);
        return [];
      },
      appendDelivery: append(APPENDS.appendDelivery),
      appendKeyed: append(APPENDS.appendKeyed),
      ...claimSteps(db),
      prune(values) {
        continuesNumbers = false;
        return [prune(values)];
      },
    },
    committed(writes, results) {
      continuesNumbers ||= results.some(
        (result, i) => 'rows' in result && isAppend(writes[i]) && (result.rows[0] ?? []).length > 0,
      );
    },
  };
}

function isAppend(write: Write | undefined): boolean {
  const { statement = '' } = write?.[0] ?? {};
  return statement in APPENDS;
}

/**
 * Creates the function that runs a step in a transaction; it returns `removed`, `looked`, and 1 for the last
 * step.
 */
function createPruner(
  db: DatabaseSync,
): (values: readonly SQLInputValue[]) => readonly [removed: number, looked: number, isLast: number] {
  const names = Object.keys(PRUNE_STATEMENTS) as (keyof typeof PRUNE_STATEMENTS)[];
  const prepared = new Map(names.map((name) => [name, db.prepare(PRUNE_STATEMENTS[name])]));
  type Name = keyof typeof PRUNE_STATEMENTS;
  const run = (name: Name, ...values: readonly SQLInputValue[]) => void prepared.get(name)?.run(...values);
  const row = <T>(name: Name, ...values: readonly SQLInputValue[]) =>
    prepared.get(name)?.get(...values) as T | undefined;
  const rows = (name: Name, ...values: readonly SQLInputValue[]) =>
    (prepared.get(name)?.all(...values) ?? []) as unknown as readonly Entry[];

  /** The next entries of a rule, oldest first. */
  function next(kind: PruneRule['kind'], before: number, now: number): readonly Entry[] {
    const { at, seq } = row<Entry>('cursor', kind) ?? { at: 0, seq: 0 };
    if (kind !== 'unhandled') {
      if (at < before)
        return [...rows('endedThen', at, seq), ...rows('endedLater', at, before)].slice(0, WINDOW);
      // The clock was set back, or the age was raised: entries may yet be added before the cursor.
      if (at > before) run('moveCursor', before, 0, kind);
      return [];
    }
    const entries = rows('received', seq);
    // Entries dated in the future, by a wrong clock, do not stop the scan.
    const young = entries.findIndex((entry) => entry.at >= before && entry.at <= now);
    return young === -1 ? entries : entries.slice(0, young);
  }

  function isRemovable(kind: PruneRule['kind'], before: number, { at, delivery }: Entry): boolean {
    const has = row<Jobs>('jobs', delivery);
    if (has === undefined || has.open > 0) return false;
    if (kind === 'unhandled') return has.jobs === 0 && at < before;
    return kind === 'excess' ? has.dead === 0 : has.endedAt < before;
  }

  return ([kind, before, limit, remember = null]) => {
    const rule = String(kind) as PruneRule['kind'];
    const edge = Number(before);
    let excess = Number.POSITIVE_INFINITY;
    if (rule === 'excess') excess = (row<{ size: number }>('size')?.size ?? 0) - Number(limit);
    if (excess <= 0) return [0, 0, 1];
    const began = performance.now();
    const entries = next(rule, edge, Number(limit));
    const zones = new Set<number>();
    let removed = 0;
    let looked = 0;
    let counted = 0;
    for (const entry of entries) {
      if (looked > 0 && (excess <= 0 || performance.now() - began > STEP_TIME)) break;
      looked++;
      if (!isRemovable(rule, edge, entry)) continue;
      const { delivery } = entry;
      const bytes = row<{ bytes: number }>('bytes', delivery)?.bytes;
      if (bytes === undefined) continue;
      if (removed++ === 0) run('keepHighest');
      const zone = row<{ last_seq: number }>('zoneOf', delivery)?.last_seq;
      if (zone !== undefined) {
        zones.add(zone);
        counted += bytes;
      }
      excess -= bytes;
      if (remember !== null) run('rememberKey', delivery, remember);
      run('removeAttempts', delivery);
      run('removeJobs', delivery);
      run('removeDelivery', delivery);
    }
    for (const zone of zones) run('pruneZone', zone);
    if (counted > 0) run('shrink', counted);
    const last = entries[looked - 1];
    if (last !== undefined) run('moveCursor', last.at, last.seq, rule);
    const isLast = excess <= 0 || (looked === entries.length && entries.length < WINDOW);
    return [removed, looked, isLast ? 1 : 0];
  };
}
