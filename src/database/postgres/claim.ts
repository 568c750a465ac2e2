import type { ClaimedJob } from '../../inbox/delivery.ts';
import type { Row } from './connection.ts';
import { sqlState } from './faults.ts';
import type { Server } from './server.ts';
import { storable, stored } from './text.ts';

/** Which jobs of a target may be claimed, and for how long. */
export interface Claim {
  readonly target: string;
  readonly limit: number;
  readonly owner: string;
  readonly now: number;
  readonly leaseEnd: number;
}

const UNIQUE_VIOLATION = '23505';
/** Another process was faster so often: the next look for due jobs tries again. */
const MAX_ATTEMPTS = 5;

/** The columns of a delivery as a handler gets it, without its `seq`. */
export const DELIVERY = 'd.id, d.source, d.event, d.data_pointer, d.content_type, d.body, d.received_at';

// What another process is claiming is passed over. Of the jobs with one key only the first may be claimed, and not
// while another one is in hand.
const CLAIM = {
  name: 'claim',
  text: `
    WITH due AS (
      SELECT seq FROM jobs AS due
      WHERE target = $1 AND status = 'open' AND due_at <= $2
        AND (order_key IS NULL OR (
          NOT EXISTS (
            SELECT 1 FROM jobs AS earlier
            WHERE earlier.target = due.target AND earlier.order_key = due.order_key
              AND earlier.status = 'open' AND earlier.seq < due.seq)
          AND NOT EXISTS (
            SELECT 1 FROM jobs AS held
            WHERE held.target = due.target AND held.order_key = due.order_key
              AND held.status = 'open' AND held.owner IS NOT NULL AND held.due_at > $2)))
      ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED),
    claimed AS (
      UPDATE jobs SET owner = $4, due_at = $5, attempts = attempts + 1
      FROM due WHERE jobs.seq = due.seq RETURNING jobs.seq, jobs.attempts, jobs.delivery)
    SELECT claimed.seq, claimed.attempts, ${DELIVERY}
    FROM claimed JOIN deliveries AS d ON d.seq = claimed.delivery ORDER BY claimed.seq`,
};
const DROP_ENDED_LEASES = {
  text: `
    UPDATE jobs SET owner = NULL
    WHERE target = $1 AND status = 'open' AND due_at <= $2 AND owner IS NOT NULL AND order_key IS NOT NULL`,
};

/** Claims due jobs, oldest first. */
export async function claimJobs(
  server: Server,
  { target, limit, owner, now, leaseEnd }: Claim,
): Promise<readonly ClaimedJob[]> {
  const name = storable(target);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    try {
      const rows = await server.write(CLAIM, [name, now, limit, owner, leaseEnd]);
      return rows.map((row) => claimedJob(target, row));
    } catch (error) {
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      // A job of the same order came into another one's hand meanwhile, or a lease on one has ended.
      await server.write(DROP_ENDED_LEASES, [name, now]);
    }
  }
  return [];
}

function claimedJob(target: string, [seq, attempts, ...delivery]: Row): ClaimedJob {
  return {
    job: Number(seq),
    target,
    attempt: Number(attempts),
    delivery: storedDelivery(delivery),
  };
}

/** Reads the columns of `DELIVERY`. */
export function storedDelivery(row: Row) {
  const [id, source, event, dataPointer, contentType, body, receivedAt] = row as [
    string,
    string,
    string | null,
    string,
    string | null,
    Uint8Array,
    number,
  ];
  return {
    id,
    source: stored(source),
    event: stored(event),
    dataPointer: stored(dataPointer),
    contentType: stored(contentType),
    body,
    receivedAt,
  };
}
