import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { withoutPostgres } from '../support/databases.ts';
import { startForwarder } from '../support/forwarder.ts';
import { startPostgres } from '../support/postgres.ts';
import { proofCount, proofSeed, withoutControls } from '../support/proof-settings.ts';
import { type Random, seededRandom } from '../support/random.ts';
import { RunningTime } from '../support/running-time.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { Ledger } from './kill/ledger.ts';
import { Audit, LOSS } from './replicas/audit.ts';
import { Group } from './replicas/group.ts';
import { type LoadResult, runLoad } from './replicas/load.ts';

// PORTICO_PROOF_FAILOVERS: how often, for each way to find the new server.
const FAILOVERS = proofCount('PORTICO_PROOF_FAILOVERS', 1);
const SEED = proofSeed();
const CONNECTIONS = 6;
/** Users that are acknowledged before anything happens. */
const LOAD = 50;
/** From the moment in which the replica takes writes to the first one that is acknowledged, in milliseconds; on a quiet machine a tenth of it is enough. */
const RECOVERY = 5_000;

type Way = 'a URL with two hosts' | 'one address in front';

interface FailoverOptions {
  readonly way: Way;
  readonly random: Random;
  /** Whether a commit waits for the replica. */
  readonly synchronous: boolean;
}

/**
 * Two processes under load; the replica falls behind, the primary dies, the replica takes over. Resolves to what there is
 * to tell.
 */
async function failOver({ way, random, synchronous }: FailoverOptions): Promise<string> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  const primary = cleanup.use(await startPostgres());
  const databaseUrl = await primary.createDatabase();
  const replica = cleanup.use(await startPostgres({ replicaOf: primary }));
  if (synchronous) await primary.waitForReplica(true);
  const forwarder = cleanup.use(await startForwarder(primary.port));
  const hosts =
    way === 'one address in front'
      ? `127.0.0.1:${forwarder.port}`
      : `127.0.0.1:${primary.port},127.0.0.1:${replica.port}`;
  const at = (address: string) => databaseUrl.replace(/127\.0\.0\.1:\d+/, address);
  const ledger = new Ledger();
  const group = cleanup.use(await Group.start({ folder, databaseUrl: at(hosts), count: 2 }));
  const result: LoadResult = { created: [], ordered: [], refused: new Set(), unknown: 0, reads: 0 };
  const stop = new AbortController();
  const next = () => group.next();
  const load = runLoad({ next, ledger, random, connections: CONNECTIONS, signal: stop.signal }, result);
  const acknowledged = () => result.created.length;

  const work = (async () => {
    await waitFor('the load', () => acknowledged() > LOAD);
    await delay(random.below(1_000));
    // What the primary commits from now on the replica does not have.
    await replica.stop('immediate');
    const alone = acknowledged();
    if (synchronous) await delay(random.below(300));
    else await waitFor('more load', () => acknowledged() > alone + LOAD);
    await primary.stop('immediate');
    const before = acknowledged();
    await replica.start();
    await delay(random.below(300));
    await replica.promote();
    forwarder.switchTo(replica.port);
    using time = new RunningTime();
    await waitFor('a write to be acknowledged', () => stop.signal.aborted || acknowledged() > before);
    const took = time.elapsed;
    await waitFor('both processes to serve', async () => {
      const replies = group.running.map(({ portico: { urls } }) =>
        fetch(`${urls.rest}/users`, { method: 'POST', body: '{"name":"","email":""}' }).then(() =>
          fetch(`${urls.rest}/users/1`),
        ),
      );
      return (await Promise.all(replies)).every(({ status }) => status === 200);
    });
    await delay(700);
    return took;
  })();
  try {
    await Promise.race([work, load]);
  } finally {
    stop.abort();
    await Promise.allSettled([work, load]);
  }
  const [took] = await Promise.all([work, load]);
  const audit = new Audit({
    folder,
    ledger,
    sql: (text) => replica.sql(text, at(`127.0.0.1:${replica.port}`)),
  });
  const again = await audit.all(group, result);
  for (const { portico } of group.running) assert.equal(portico.child.exitCode, null, 'the processes go on');
  assert.ok(took < RECOVERY, `a write was acknowledged ${took} ms after the replica took over`);
  const { created, unknown, refused, reads } = result;
  return (
    `${way}: ${created.length} users and ${ledger.acknowledgedDeliveries} deliveries acknowledged or found, ` +
    `${reads} users read, ${unknown} unknown, ${refused.size} refused; ${again} deliveries handled again; ` +
    `a write was acknowledged ${took.toFixed(0)} ms after the replica took over`
  );
}

for (const way of ['a URL with two hosts', 'one address in front'] as const) {
  test(`nothing acknowledged is lost when a synchronous replica takes over, by ${way}, ${FAILOVERS} times`, {
    skip: withoutPostgres ?? false,
    timeout: 300_000 + FAILOVERS * 300_000,
  }, async (t) => {
    t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
    for (let i = 0; i < FAILOVERS; i++) {
      t.diagnostic(await failOver({ way, random: seededRandom(SEED + i), synchronous: true }));
    }
  });
}

test('control: with a replica that nobody waits for, what was acknowledged is found to be lost', {
  skip: withoutPostgres ?? withoutControls,
  timeout: 600_000,
}, async () => {
  const random = seededRandom(SEED);
  await assert.rejects(failOver({ way: 'a URL with two hosts', random, synchronous: false }), LOSS);
});
