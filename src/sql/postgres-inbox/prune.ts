import { type PruneRule, type PruneStep, rememberedFrom } from '../../inbox/inbox.ts';
import { DELIVERY_BYTES } from '../inbox-sql.ts';
import type { Statement } from '../postgres-pool/connection.ts';
import { sqlState } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { resize } from './append.ts';
import { REMOVE_ATTEMPTS } from './settle.ts';

const FOREIGN_KEY_VIOLATION = '23503';
/** Maximum number of entries that a step examines. */
export const WINDOW = 200;
/** Maximum total size of the bodies that a step removes, in bytes, unless the first one is larger. */
const MAX_BYTES = 16 * 1024 * 1024;

export const SIZE = { text: 'SELECT coalesce(sum(bytes), 0)::bigint FROM inbox_size' };

/**
 * A rule in SQL: when it applies, its next entries after the row `cursor`, and which of their deliveries to
 * remove.
 */
interface RuleSql {
  readonly due: string;
  /** Another rule whose cursor also applies: what precedes it needs no further scan. */
  readonly behind?: PruneRule['kind'];
  readonly looked: string;
  readonly goes: string;
}

/** Jobs in the order in which they ended; a delivery is removed at the entry of its last job. */
const ENDED = `
  looked AS MATERIALIZED (
    SELECT finished_at AS at, seq, delivery FROM jobs
    WHERE (finished_at, seq) > ((SELECT at FROM cursor), (SELECT seq FROM cursor)) AND finished_at < $2
    ORDER BY finished_at, seq LIMIT ${WINDOW})`;

/** `$2` is `before`, `$3` the rule's own parameter, `$4` the result of `rememberedFrom`. */
const RULES: Readonly<Record<PruneRule['kind'], RuleSql>> = {
  ended: {
    due: '$3::bigint IS NULL',
    looked: ENDED,
    goes: 'has.open = 0 AND has.ended_at < $2',
  },
  // The rule by age has removed entries before its cursor; deliveries it kept come again at the end of their
  // last job.
  excess: {
    behind: 'ended',
    due: '$3::bigint < (SELECT coalesce(sum(bytes), 0) FROM inbox_size)',
    looked: ENDED,
    goes: 'has.open = 0 AND has.dead = 0',
  },
  // Entries dated in the future, by a wrong clock, do not stop the scan.
  unhandled: {
    due: 'true',
    looked: `
      received AS MATERIALIZED (
        SELECT received_at AS at, seq, seq AS delivery FROM deliveries
        WHERE seq > (SELECT seq FROM cursor) ORDER BY seq LIMIT ${WINDOW}),
      looked AS MATERIALIZED (
        SELECT * FROM received
        WHERE seq < coalesce((SELECT min(seq) FROM received WHERE at >= $2 AND at <= $3::bigint), seq + 1))`,
    goes: 'has.jobs = 0 AND d.received_at < $2',
  },
};

/**
 * A step of a rule. Rows are found by `= ANY`, which always uses an index, so the plan does not depend on
 * statistics. A concurrent step of another process on the same rule makes this one find nothing.
 */
const prune = ({ due, behind, looked, goes }: RuleSql, byTime: boolean) => `
  WITH own AS MATERIALIZED (
    SELECT at, seq FROM retention_cursors WHERE rule = $1 AND ${due} FOR UPDATE SKIP LOCKED),
  stored AS MATERIALIZED (
    SELECT further.* FROM own, LATERAL (
      SELECT own.at, own.seq${behind === undefined ? '' : ` UNION ALL SELECT at, seq FROM retention_cursors WHERE rule = '${behind}'`}
      ORDER BY 1 DESC, 2 DESC LIMIT 1) AS further),
  cursor AS MATERIALIZED (
    ${byTime ? 'SELECT least(at, $2) AS at, CASE WHEN at > $2 THEN 0 ELSE seq END AS seq' : 'SELECT at, seq'} FROM stored),
  ${looked},
  weighed AS MATERIALIZED (
    SELECT looked.*, row_number() OVER byAge AS nth, sum(body.bytes) OVER byAge AS total
    FROM looked, LATERAL (
      SELECT octet_length(body) AS bytes FROM deliveries WHERE seq = looked.delivery OFFSET 0) AS body
    WINDOW byAge AS (ORDER BY ${byTime ? 'at, seq' : 'seq'})),
  taken AS MATERIALIZED (SELECT * FROM weighed WHERE nth = 1 OR total <= ${MAX_BYTES}),
  old AS MATERIALIZED (
    SELECT d.seq, has.jobs > 0 AND has.dead = 0 AS handled FROM deliveries AS d, LATERAL (
      SELECT count(*) AS jobs, count(*) FILTER (WHERE status = 'open') AS open,
        count(*) FILTER (WHERE status = 'dead') AS dead, max(finished_at) AS ended_at
      FROM jobs WHERE delivery = d.seq OFFSET 0) AS has
    WHERE d.seq = ANY (ARRAY(SELECT delivery FROM taken)) AND ${goes}
    ORDER BY d.seq FOR UPDATE OF d),
  remembered AS (
    INSERT INTO remembered_keys (source, dedup_key, id, received_at)
    SELECT * FROM (
      SELECT source, dedup_key, id, received_at FROM deliveries
      WHERE seq = ANY (ARRAY(SELECT seq FROM old WHERE handled)) OFFSET 0) AS handled
    WHERE dedup_key IS NOT NULL AND received_at >= $4::bigint
    ON CONFLICT DO NOTHING),
  attempts_gone AS (${REMOVE_ATTEMPTS}),
  jobs_gone AS (DELETE FROM jobs WHERE delivery = ANY (ARRAY(SELECT seq FROM old)) AND status <> 'open'),
  gone AS (
    DELETE FROM deliveries WHERE seq = ANY (ARRAY(SELECT seq FROM old)) RETURNING ${DELIVERY_BYTES} AS bytes),
  resized AS (${resize('-', 'gone')}),
  moved AS (
    UPDATE retention_cursors SET
      at = coalesce((SELECT at FROM taken ORDER BY nth DESC LIMIT 1), (SELECT at FROM cursor)),
      seq = coalesce((SELECT seq FROM taken ORDER BY nth DESC LIMIT 1), (SELECT seq FROM cursor))
    WHERE rule = $1 AND EXISTS (SELECT 1 FROM cursor))
  SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM looked), (SELECT count(*) FROM taken)`;

/** The statement of each rule. */
export const PRUNE: Readonly<Record<PruneRule['kind'], Statement>> = {
  ended: { name: 'prune-ended', text: prune(RULES.ended, true) },
  excess: { name: 'prune-excess', text: prune(RULES.excess, true) },
  unhandled: { name: 'prune-unhandled', text: prune(RULES.unhandled, false) },
};

/** Runs a step of a rule. Rejects as `Server.write` does. */
export async function pruneStep(server: Server, rule: PruneRule): Promise<PruneStep> {
  const more = rule.kind === 'excess' ? rule.maxBytes : rule.kind === 'unhandled' ? rule.now : null;
  const step = async () => {
    const [row = []] = await server.write(PRUNE[rule.kind], [
      rule.kind,
      rule.before,
      more,
      rememberedFrom(rule),
    ]);
    const [removed = 0, looked = 0, taken = 0] = row.map(Number);
    return { removed, looked, isLast: taken === looked && looked < WINDOW };
  };
  try {
    return await step();
  } catch (error) {
    // A job of one of the deliveries was reopened concurrently.
    if (sqlState(error) !== FOREIGN_KEY_VIOLATION) throw error;
    return step();
  }
}
