import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../core/errors.ts';
import { TenantChangedError } from '../../inbox/delivery.ts';
import type { AppendedAndClaimed, Finished, Inbox } from '../../inbox/inbox.ts';
import type { DatabaseObserver } from '../batch-queue.ts';
import type { Notifier } from '../postgres/notifier.ts';
import { postgresSql } from '../postgres/sql.ts';
import { singleWrite, writeQueue } from '../postgres/write-queue.ts';
import { STATEMENT_TIMEOUT } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { inboxUpkeep } from '../stores/inbox-upkeep.ts';
import { CHANGE_RELAY_QUERIES, checkpoints, enqueuedDeliveries, relayStore } from '../stores/producers.ts';
import { SERVER_NOW } from '../stores/sql.ts';
import { appendAll, conditionalAppends, type GivenDelivery } from './append.ts';
import { claimJobs } from './claim.ts';
import { pruneStep, SIZE } from './prune.ts';
import { isSettled, type Settlement, settleAll } from './settle.ts';

/** Maximum number of connections for concurrent batches of appends. */
const APPEND_CONCURRENCY = 2;
/** A third of the connections for writes: each claim holds one. */
const CLAIMS_AT_ONCE = 2;
/** Recording an outcome is retried for this long, in milliseconds. */
const SETTLE_TIMEOUT = 5_000;
/** Maximum pause between two of these retries, in milliseconds. */
const SETTLE_PAUSE = 500;

const CLOCK = { name: 'clock', text: `SELECT ${SERVER_NOW}` };

/** The inbox in PostgreSQL. Appends and settlements are batched, each into one statement. */
export function postgresInbox(
  server: Server,
  notifier: Notifier,
  observer: DatabaseObserver,
): Inbox & AsyncDisposable {
  const appends = writeQueue<GivenDelivery, AppendedAndClaimed | TenantChangedError>(
    (deliveries) => appendAll(server, deliveries),
    {
      concurrency: APPEND_CONCURRENCY,
      observer,
      maxWait: server.maxWait,
      sizeOf: ({ delivery }) => delivery.body.byteLength,
    },
  );
  const settlements = writeQueue<Settlement, Finished>((all) => settleAll(server, all), {
    observer,
    maxWait: server.maxWait,
  });
  let closed = false;
  const sql = postgresSql(server, observer, { escapes: true });
  const conditional = conditionalAppends(sql, notifier);
  const serverClock = () => null;
  async function clock(): Promise<number> {
    const [row] = await server.read(CLOCK, []);
    return Number(row?.[0]);
  }

  /**
   * Retries while the server is unavailable, so that a short outage does not repeat attempts; the fence makes
   * this safe.
   */
  async function settle(settlement: Settlement): Promise<Finished> {
    const deadline = performance.now() + SETTLE_TIMEOUT;
    for (let first = true; ; first = false) {
      try {
        const finished = await settlements.submit(settlement);
        if (finished.recorded || first) return finished;
        return { recorded: await isSettled(server, settlement) };
      } catch (error) {
        if (closed || performance.now() > deadline) throw error;
        await delay(Math.random() * SETTLE_PAUSE);
      }
    }
  }

  async function append(given: GivenDelivery): Promise<AppendedAndClaimed> {
    const result = await appends.submit(given);
    if (result instanceof TenantChangedError) throw result;
    const { appended, jobs } = result;
    // Any process with a free slot may claim jobs that are not handed over.
    const isLeft = jobs.length < given.delivery.jobs.length;
    if (appended === 'revived' || (appended === 'stored' && isLeft)) notifier.notify('work');
    return result;
  }

  return {
    append: async (delivery) => (await append({ delivery })).appended,

    appendAndClaim: (delivery, handOver) => append({ delivery, handOver }),

    claim(target, limit, owner, lease, options = {}) {
      const { held = [], quarantined = false, maxBytes = Number.MAX_SAFE_INTEGER, now = null } = options;
      const claim = { target, limit, owner, lease, held, quarantined, maxBytes, now };
      return singleWrite(observer, () => claimJobs(server, claim));
    },

    claimsAtOnce: CLAIMS_AT_ONCE,

    settle: async (job, owner, outcome, now) =>
      (await settle({ job, owner, outcome, next: null, now: now ?? null })).recorded,

    finish: (job, owner, outcome, next, now) => settle({ job, owner, outcome, next, now: now ?? null }),

    ...inboxUpkeep({ sql, background: sql, observer, clock: serverClock, wallClock: serverClock }),

    prune: (rule) => singleWrite(observer, () => pruneStep(server, rule)),

    checkpoints: checkpoints(sql, conditional, clock),
    enqueued: {
      ...enqueuedDeliveries(sql, conditional),
      onEnqueued: (listener) => notifier.listen('enqueued', listener),
    },
    relay: relayStore(sql, conditional),
    changeRelay: relayStore(sql, conditional, CHANGE_RELAY_QUERIES),
    clock,

    async size() {
      const [row] = await server.readAlone(SIZE, []);
      return Number(row?.[0] ?? 0);
    },

    onWork: (listener) => notifier.listen('work', listener),

    /** Waits for the accepted writes, then refuses later ones. */
    async [Symbol.asyncDispose]() {
      closed = true;
      await Promise.all([appends[Symbol.asyncDispose](), settlements[Symbol.asyncDispose]()]);
    },
  };
}

/** Interval of the polls, in milliseconds. */
const PAUSE = 5;
/** Longer than any transaction of Portico, in milliseconds. */
const TIMEOUT = STATEMENT_TIMEOUT + 1_000;

/**
 * The transactions that may be storing deliveries. An INSERT takes this lock before it takes a `seq`, and
 * releases it only once its rows are visible.
 */
const WRITERS = {
  name: 'delivery-writers',
  text: `
    SELECT virtualtransaction, pid FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'deliveries'::regclass AND mode = 'RowExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
};

/**
 * Waits for the transactions that were storing deliveries when it was called. Afterwards every `seq` below
 * one already seen is visible or was rolled back. Takes no lock. Fails with StoreUnavailableError.
 */
export async function awaitEarlierWriters(server: Server): Promise<void> {
  const deadline = performance.now() + TIMEOUT;
  let awaited: ReadonlySet<unknown> | undefined;
  for (;;) {
    const rows = await server.readAlone(WRITERS, []);
    const left = rows.filter(([transaction]) => awaited?.has(transaction) ?? true);
    if (left.length === 0) return;
    if (performance.now() > deadline) throw timedOut(left.map(([, pid]) => pid));
    awaited = new Set(left.map(([transaction]) => transaction));
    await delay(PAUSE);
  }
}

function timedOut(pids: readonly unknown[]): StoreUnavailableError {
  return new StoreUnavailableError(
    `A transaction that may have stored deliveries has been open for ${TIMEOUT / 1_000} s, so their order is not ` +
      `known yet. Wait for it, or end it: process ${pids.join(', ')} in pg_stat_activity`,
  );
}
