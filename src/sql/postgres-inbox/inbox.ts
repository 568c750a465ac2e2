import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../core/errors.ts';
import { appendedOnly, type Finished, type Inbox } from '../../inbox/inbox.ts';
import type { DatabaseObserver } from '../batch-queue.ts';
import type { Notifier } from '../postgres/notifier.ts';
import { postgresSql } from '../postgres/sql.ts';
import { singleWrite, writeQueue } from '../postgres/write-queue.ts';
import { STATEMENT_TIMEOUT } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { inboxUpkeep } from '../stores/inbox-upkeep.ts';
import { CHANGE_RELAY_QUERIES, checkpoints, enqueuedDeliveries, relayStore } from '../stores/producers.ts';
import { SERVER_NOW } from '../stores/sql.ts';
import { appendQueue, conditionalAppends } from './append.ts';
import { Claims } from './claim.ts';
import { pruneStep, SIZE } from './prune.ts';
import { isSettled, type Settlement, settleAll } from './settle.ts';

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
  const appends = appendQueue(server, observer);
  const settlements = writeQueue<Settlement, Finished>((all) => settleAll(server, all), {
    observer,
    maxWait: server.maxWait,
  });
  const claims = new Claims(server, observer);
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

  const appendAll: Inbox['appendAll'] = async (deliveries, handOvers = []) => {
    const given = deliveries.map((delivery, i) => ({ delivery, handOver: handOvers[i] }));
    const results = await appends.submitAll(given, (result) => result);
    const hasWork = results.some((result, i) => {
      if (result instanceof Error) return false;
      // Any process with a free slot may claim jobs that are not handed over.
      const isLeft = result.jobs.length < (deliveries[i]?.jobs.length ?? 0);
      return result.appended === 'revived' || (result.appended === 'stored' && isLeft);
    });
    if (hasWork) notifier.notify('work');
    return results;
  };

  return {
    append: async (delivery) => appendedOnly(await appendAll([delivery])),

    appendAll,

    async claim(target, limit, owner, lease, { quarantined = false, ...options } = {}) {
      const claimant = { owner, lease, ...options };
      const claim = { target, limit };
      const [claimed = []] = quarantined
        ? [await claims.quarantined(claim, claimant)]
        : await claims.each([claim], claimant);
      if (claimed instanceof Error) throw claimed;
      return claimed;
    },

    claimEach: (targets, owner, lease, options = {}) => claims.each(targets, { owner, lease, ...options }),

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
