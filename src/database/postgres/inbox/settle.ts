import type { Outcome } from '../../../inbox/inbox.ts';
import type { Server } from '../pool/server.ts';
import { storable } from '../text.ts';
import { timeOr } from './server-clock.ts';

/** How an attempt ended. The job, its owner, its attempt and its deaths together are the fence. */
export interface Settlement {
  readonly job: number;
  readonly owner: string;
  readonly attempt: number;
  readonly deaths: number;
  readonly outcome: Outcome;
  /** Null: by the clock of the server. */
  readonly now: number | null;
}

const NOW = timeOr('given.now');

const SETTLE = {
  name: 'settle',
  // Locked in the order of their numbers, so that statements with the same jobs never wait in a circle.
  text: `
    WITH locked AS MATERIALIZED (
      SELECT seq FROM jobs WHERE seq = ANY ($1::bigint[]) ORDER BY seq FOR UPDATE)
    UPDATE jobs SET
      owner = NULL,
      status = CASE WHEN kind IN ('done', 'dead') THEN kind ELSE jobs.status END,
      error = CASE WHEN kind IN ('released', 'died') THEN jobs.error ELSE given.error END,
      due_at = CASE WHEN kind IN ('done', 'dead') THEN jobs.due_at ELSE ${NOW} + given.wait END,
      finished_at = CASE WHEN kind IN ('done', 'dead') THEN ${NOW} ELSE jobs.finished_at END,
      attempts = jobs.attempts - CASE WHEN kind IN ('released', 'died') THEN 1 ELSE 0 END,
      deaths = jobs.deaths + CASE kind WHEN 'died' THEN 1 ELSE 0 END
    FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
      $8::int[])
      WITH ORDINALITY AS given (seq, owner, attempt, kind, error, wait, now, deaths, nth)
    JOIN locked USING (seq)
    WHERE jobs.seq = given.seq AND jobs.owner = given.owner AND jobs.attempts = given.attempt
      AND jobs.deaths = given.deaths
    RETURNING given.nth`,
};

const IS_SETTLED = {
  name: 'is-settled',
  text: `
    SELECT 1 FROM jobs
    WHERE seq = $1 AND owner IS NULL AND attempts = $2 AND deaths = $3 AND status = $4`,
};

/** Records outcomes in one statement; resolves to whether each was recorded. */
export async function settleAll(
  server: Server,
  settlements: readonly Settlement[],
): Promise<readonly boolean[]> {
  const rows = await server.write(SETTLE, [
    settlements.map(({ job }) => job),
    settlements.map(({ owner }) => owner),
    settlements.map(({ attempt }) => attempt),
    settlements.map(({ outcome }) => outcome.kind),
    settlements.map(({ outcome }) => ('error' in outcome ? storable(outcome.error) : null)),
    settlements.map(({ outcome }) => (outcome.kind === 'retry' ? outcome.wait : 0)),
    settlements.map(({ now }) => now),
    settlements.map(({ deaths }) => deaths),
  ]);
  const recorded = new Set(rows.map(([nth]) => nth));
  return settlements.map((_, i) => recorded.has(i + 1));
}

const isReleased = ({ kind }: Outcome) => kind === 'released' || kind === 'died';

/** Whether this outcome is recorded already: an earlier try may have committed without an answer. */
export async function isSettled(
  server: Server,
  { job, attempt, deaths, outcome }: Settlement,
): Promise<boolean> {
  const attempts = isReleased(outcome) ? attempt - 1 : attempt;
  const died = outcome.kind === 'died' ? 1 : 0;
  const status = outcome.kind === 'done' || outcome.kind === 'dead' ? outcome.kind : 'open';
  const rows = await server.read(IS_SETTLED, [job, attempts, deaths + died, status]);
  return rows.length > 0;
}
