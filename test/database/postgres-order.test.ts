import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import type { ClaimedJob, NewDelivery } from '../../src/inbox/delivery.ts';
import type { Inbox, Outcome } from '../../src/inbox/inbox.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { claim, LATER } from '../support/claim-jobs.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Makes updates of jobs by the slow process wait when they have their snapshot and have locked no row yet: for
 * a lock that the client holds.
 */
const PAUSE = `
  CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
  BEGIN
    IF current_setting('test.pauses', true) = 'yes' THEN PERFORM pg_advisory_xact_lock_shared(1); END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER pause BEFORE UPDATE ON jobs FOR EACH STATEMENT EXECUTE FUNCTION pause()`;
/** Whether a statement waits for a lock: that of the client, or those of rows. */
const waits = (condition: string) => `
  SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event ${condition} 'advisory'`;

const JOBS = [{ target: 't', orderKey: 'k' }];

/** Two processes on one database, and a client that says when statements of the slow one go on. */
async function processes() {
  await using cleanup = new AsyncDisposableStack();
  const url = await postgresUrl();
  const fast = cleanup.use(await openDatabase(url));
  const slow = cleanup.use(await openDatabase(`${url}${encodeURIComponent(' -c test.pauses=yes')}`));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanup.defer(() => client.end());
  await client.query(PAUSE);
  const isWaiting = async (condition: string) => (await client.query(waits(condition))).rows.length > 0;

  /** Does `meanwhile` after the statement of `work` has its snapshot, and before it locks its first row. */
  async function during<T>(work: () => Promise<T>, meanwhile: () => Promise<unknown>): Promise<T> {
    await client.query('SELECT pg_advisory_lock(1)');
    const working = work();
    await waitFor('the statement to wait', () => isWaiting('='));
    await meanwhile();
    await client.query('SELECT pg_advisory_unlock(1)');
    return working;
  }

  /** Begins to store a repeat of a dead delivery, which reopens its job, until it has ended or waits for a row. */
  async function beginRepeat(dead: NewDelivery): Promise<{ readonly repeated: Promise<unknown> }> {
    let ended = false;
    const repeated = fast.inbox
      .append(newDelivery({ jobs: JOBS, dedupKey: dead.dedupKey }))
      .catch((error: unknown) => {
        // The row was locked for too long; the sender repeats it again.
        if (!(error instanceof StoreUnavailableError)) throw error;
      })
      .finally(() => {
        ended = true;
      });
    await waitFor('the repeat', async () => ended || (await isWaiting('<>')));
    return { repeated };
  }

  /** Stores a delivery and lets its job die. */
  async function storeDead(): Promise<ClaimedJob & { readonly delivery: NewDelivery }> {
    const delivery = newDelivery({ jobs: JOBS, dedupKey: 'repeated' });
    await fast.inbox.append(delivery);
    const [job] = await claim(fast.inbox);
    assert.ok(job && (await fast.inbox.settle(job, 'me', { kind: 'dead', error: 'x' }, LATER)));
    return { ...job, delivery };
  }
  const rest = cleanup.move();
  return { fast, slow, during, beginRepeat, storeDead, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

/** Ends jobs as done, then claims and ends others until there are none; resolves to the numbers of all. */
async function drain(inbox: Inbox, claimed: readonly ClaimedJob[], owner = 'me'): Promise<readonly number[]> {
  const ran: number[] = [];
  const next = () => claim(inbox, 1, owner);
  for (let jobs = claimed.length > 0 ? claimed : await next(); jobs.length > 0; jobs = await next()) {
    for (const job of jobs) {
      assert.ok(
        await inbox.settle(job, owner, { kind: 'done' }, LATER),
        `the lease of job ${job.job} is lost`,
      );
      ran.push(job.job);
    }
  }
  return ran;
}

describe('order while statements in PostgreSQL overlap', { skip: withoutPostgres ?? false }, () => {
  const ends: readonly Outcome[] = [{ kind: 'released' }, { kind: 'retry', wait: 0, error: 'x' }];
  for (const outcome of ends) {
    test(`a claim does not block the head of a key behind a job without a lease: ${outcome.kind}`, async () => {
      await using both = await processes();
      const { fast, slow } = both;
      const first = await both.storeDead();
      await fast.inbox.append(newDelivery({ jobs: JOBS }));
      const [second] = await claim(fast.inbox);
      assert.ok(second);
      assert.equal(await fast.deliveries.replay(first.delivery.id, JOBS, LATER), true);
      // The claim still sees the lease of the second job, behind which the first one has to wait.
      const claimed = await both.during(
        () => claim(slow.inbox, 10, 'slow'),
        () => fast.inbox.settle(second, 'me', outcome, LATER),
      );
      const ran = await drain(slow.inbox, claimed, 'slow');
      assert.deepEqual(ran.toSorted(), [first.job, second.job]);
    });
  }

  test('a replay leaves a job alone that a repeat of its delivery has opened and a process has claimed', async () => {
    await using both = await processes();
    const { fast, slow } = both;
    const dead = await both.storeDead();
    let repeat: Awaited<ReturnType<typeof both.beginRepeat>> | undefined;
    let claimed: readonly ClaimedJob[] = [];
    await both.during(
      () => slow.deliveries.replay(dead.delivery.id, JOBS, LATER),
      async () => {
        repeat = await both.beginRepeat(dead.delivery);
        claimed = await claim(fast.inbox);
      },
    );
    await repeat?.repeated;
    assert.deepEqual(await drain(fast.inbox, claimed), [dead.job]);
  });

  test('a replay for a renamed handler does not take the head of a key from the jobs behind it', async () => {
    await using both = await processes();
    const { fast, slow } = both;
    const dead = await both.storeDead();
    await fast.inbox.append(newDelivery({ jobs: JOBS }));
    const renamed = [{ target: 'new', orderKey: 'k', replaces: 't' }];
    let repeat: Awaited<ReturnType<typeof both.beginRepeat>> | undefined;
    let claimed: readonly ClaimedJob[] = [];
    await both.during(
      () => slow.deliveries.replay(dead.delivery.id, renamed, LATER),
      async () => {
        repeat = await both.beginRepeat(dead.delivery);
        claimed = await claim(fast.inbox);
      },
    );
    await repeat?.repeated;
    const ran = await drain(fast.inbox, claimed);
    assert.ok(ran.includes(dead.job + 1), `the job behind it never ran, only ${ran}`);
  });
});
