import { setTimeout as delay } from 'node:timers/promises';
import type { ClaimedJob, NewDelivery } from '../../../inbox/delivery.ts';
import type { Appended, Backlog, Inbox, Outcome } from '../../../inbox/inbox.ts';
import type { BatchQueue } from '../../batch-queue.ts';
import { WAITING_TARGETS } from '../../inbox-sql.ts';
import { counted, type DatabaseObserver, type ReadTally } from '../../observer.ts';
import type { Notifier } from '../notifier.ts';
import { sqlState } from '../pool/faults.ts';
import type { Server } from '../pool/server.ts';
import { storable, stored } from '../text.ts';
import { singleWrite, writeQueue } from '../write-queue.ts';
import { appendAll, resize } from './append.ts';
import { claimJobs } from './claim.ts';
import { isSettled, type Settlement, settleAll } from './settle.ts';

/** Maximum number of connections on which batches of appends run at the same time. */
const APPEND_CONCURRENCY = 2;
/** Recording an outcome is retried for this long, in milliseconds. */
const SETTLE_TIMEOUT = 5_000;
/** Maximum wait between two of these retries, in milliseconds. */
const SETTLE_PAUSE = 500;
const FOREIGN_KEY_VIOLATION = '23503';

const DUE = {
  name: 'due',
  text: `
    SELECT target FROM unnest($1::text[]) AS wanted (target)
    WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.target = wanted.target AND status = 'open' AND due_at <= $2)`,
};
const RENEW = {
  name: 'renew',
  text: `UPDATE jobs SET due_at = $1 WHERE owner = $2 AND status = 'open' AND seq = ANY ($3::bigint[])`,
};
// "+ 0" makes the planner use the index of open jobs; in the index of all jobs it would scan the done ones.
const BACKLOG = {
  text: `
    SELECT (SELECT count(*) FROM jobs WHERE status = 'open'), (SELECT count(*) FROM jobs WHERE status = 'dead'),
      (SELECT received_at FROM deliveries WHERE seq = (SELECT min(delivery + 0) FROM jobs WHERE status = 'open'))`,
};
const PRUNE = {
  text: `
    WITH old AS (
      SELECT d.seq FROM deliveries AS d, LATERAL (
        SELECT count(*) AS jobs, count(*) FILTER (WHERE status = 'open') AS open,
          count(*) FILTER (WHERE status = 'dead') AS dead
        FROM jobs WHERE delivery = d.seq) AS has
      WHERE d.received_at < $1 AND has.open = 0 AND (NOT $2::boolean OR (has.jobs > 0 AND has.dead = 0))
      ORDER BY d.seq LIMIT $3 FOR UPDATE OF d SKIP LOCKED),
    jobs_gone AS (DELETE FROM jobs USING old WHERE delivery = old.seq AND status <> 'open'),
    gone AS (DELETE FROM deliveries USING old WHERE deliveries.seq = old.seq RETURNING octet_length(body) AS bytes),
    resized AS (${resize('-', 'gone')})
    SELECT count(*) FROM gone`,
};
const SIZE = { text: 'SELECT coalesce(sum(bytes), 0)::bigint FROM inbox_size' };

// Ordered by name, so that concurrent heartbeats do not deadlock.
const HEARTBEAT = {
  text: `
    ${WAITING_TARGETS},
    mine AS (SELECT DISTINCT name FROM unnest($2::text[]) AS given (name))
    INSERT INTO targets (name, seen_at)
    SELECT name, $1::bigint FROM (
      SELECT name FROM mine UNION
      SELECT target FROM waiting WHERE target IS NOT NULL AND target NOT IN (SELECT name FROM targets)) AS either
    ORDER BY name COLLATE "C"
    ON CONFLICT (name) DO UPDATE SET seen_at = greatest(targets.seen_at, excluded.seen_at)`,
};
const EXPIRE_ORPHANS = {
  text: `
    WITH orphans AS (
      SELECT jobs.seq FROM targets JOIN jobs ON jobs.target = targets.name
      WHERE targets.seen_at <= $1 AND jobs.status = 'open' AND jobs.due_at <= $1
      LIMIT $2 FOR UPDATE OF jobs SKIP LOCKED)
    UPDATE jobs SET status = 'dead', error = $3, finished_at = $4, owner = NULL
    FROM orphans WHERE jobs.seq = orphans.seq RETURNING jobs.target`,
};

/** The inbox in PostgreSQL. Appends and settlements are batched into one statement each. */
export class PostgresInbox implements Inbox, AsyncDisposable {
  readonly #server: Server;
  readonly #notifier: Notifier;
  readonly #observer: DatabaseObserver;
  readonly #appends: BatchQueue<NewDelivery, Appended>;
  readonly #settlements: BatchQueue<Settlement, boolean>;
  #closed = false;
  readonly #tallies: Readonly<Record<'due' | 'backlog', ReadTally>>;

  constructor(server: Server, notifier: Notifier, observer: DatabaseObserver) {
    this.#server = server;
    this.#notifier = notifier;
    this.#observer = observer;
    this.#appends = writeQueue((deliveries) => appendAll(server, deliveries), {
      concurrency: APPEND_CONCURRENCY,
      observer,
      sizeOf: ({ body }) => body.byteLength,
    });
    this.#settlements = writeQueue((settlements) => settleAll(server, settlements), { observer });
    this.#tallies = {
      due: observer.reads('inbox.due'),
      backlog: observer.reads('inbox.backlog'),
    };
  }

  async append(delivery: NewDelivery): Promise<Appended> {
    const appended = await this.#appends.submit(delivery);
    if (appended === 'revived' || (appended === 'stored' && delivery.jobs.length > 0))
      this.#notifier.notify('work');
    return appended;
  }

  async due(targets: readonly string[], now: number): Promise<readonly string[]> {
    const rows = await counted(this.#tallies.due, () =>
      this.#server.read(DUE, [targets.map((target) => storable(target)), now]),
    );
    return rows.map(([target]) => stored(String(target)));
  }

  claim(
    target: string,
    limit: number,
    owner: string,
    now: number,
    leaseEnd: number,
  ): Promise<readonly ClaimedJob[]> {
    return singleWrite(this.#observer, () =>
      claimJobs(this.#server, { target, limit, owner, now, leaseEnd }),
    );
  }

  async renew(owner: string, jobs: readonly number[], leaseEnd: number): Promise<void> {
    await singleWrite(this.#observer, () => this.#server.write(RENEW, [leaseEnd, owner, jobs]));
  }

  /** Retries while the server is unavailable, which the fence makes safe: a short outage repeats no attempt. */
  async settle({ job, attempt }: ClaimedJob, owner: string, outcome: Outcome, now: number): Promise<boolean> {
    const settlement = { job, owner, attempt, outcome, now };
    const deadline = performance.now() + SETTLE_TIMEOUT;
    for (let first = true; ; first = false) {
      try {
        if (await this.#settlements.submit(settlement)) return true;
        return !first && (await isSettled(this.#server, settlement));
      } catch (error) {
        if (this.#closed || performance.now() > deadline) throw error;
        await delay(Math.random() * SETTLE_PAUSE);
      }
    }
  }

  async recordHeartbeat(targets: readonly string[], now: number): Promise<void> {
    const names = targets.map((target) => storable(target));
    await singleWrite(this.#observer, () => this.#server.write(HEARTBEAT, [now, names]));
  }

  async expireOrphans(before: number, limit: number, error: string, now: number): Promise<readonly string[]> {
    const values = [before, limit, storable(error), now];
    const rows = await singleWrite(this.#observer, () => this.#server.write(EXPIRE_ORPHANS, values));
    return rows.map(([target]) => stored(String(target)));
  }

  async backlog(): Promise<Backlog> {
    const [row] = await counted(this.#tallies.backlog, () => this.#server.readAlone(BACKLOG, []));
    const [open = 0, dead = 0, oldestAt] = (row ?? []) as [number?, number?, (number | null)?];
    return { open, dead, oldestAt: oldestAt ?? undefined };
  }

  async prune(before: number, limit: number, settledOnly: boolean): Promise<number> {
    const values = [before, settledOnly, limit];
    const [row] = await singleWrite(this.#observer, async () => {
      try {
        return await this.#server.write(PRUNE, values);
      } catch (error) {
        // A job of one of the deliveries was reopened concurrently.
        if (sqlState(error) !== FOREIGN_KEY_VIOLATION) throw error;
        return this.#server.write(PRUNE, values);
      }
    });
    return Number(row?.[0] ?? 0);
  }

  async size(): Promise<number> {
    const [row] = await this.#server.readAlone(SIZE, []);
    return Number(row?.[0] ?? 0);
  }

  onWork(listener: () => void): Disposable {
    return this.#notifier.listen('work', listener);
  }

  /** Waits for the accepted writes, then refuses later ones. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#appends, this.#settlements].map((queue) => queue[Symbol.asyncDispose]()));
  }
}
