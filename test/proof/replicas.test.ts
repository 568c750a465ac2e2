import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { withoutPostgres } from '../support/databases.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { proofCount, proofSeed } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { Ledger } from './kill/ledger.ts';
import { Audit } from './replicas/audit.ts';
import { Group } from './replicas/group.ts';
import { type LoadResult, runLoad } from './replicas/load.ts';

// PORTICO_PROOF_REPLICA_KILLS: how many kills.
const KILLS = proofCount('PORTICO_PROOF_REPLICA_KILLS', 4);
const REPLICAS = 3;
const CONNECTIONS = 12;
/** From a kill until the others have done what the dead one had in hand, in milliseconds; its leases last 500. */
const TAKE_OVER = 5_000;

test(`${REPLICAS} processes on one PostgreSQL database lose nothing through ${KILLS} kills`, {
  skip: withoutPostgres ?? false,
  timeout: 300_000 + KILLS * 60_000,
}, async (t) => {
  const seed = proofSeed();
  t.diagnostic(`PORTICO_PROOF_SEED=${seed}`);
  const random = seededRandom(seed);
  await using folder = await temporaryFolder();
  await using server = await sharedPostgres();
  const databaseUrl = await server.createDatabase();
  const ledger = new Ledger();
  const sql = (text: string) => server.sql(text, databaseUrl);
  const audit = new Audit({ folder: folder.path, ledger, sql });
  await using group = await Group.start({ folder: folder.path, databaseUrl, count: REPLICAS });
  const result: LoadResult = { created: [], ordered: [], refused: new Set(), unknown: 0, reads: 0 };
  const stop = new AbortController();
  const next = () => group.next();
  const load = runLoad({ next, ledger, random, connections: CONNECTIONS, signal: stop.signal }, result);
  const takeOvers: number[] = [];
  const work = (async () => {
    for (let kills = 0; kills < KILLS; ) {
      await delay(random.below(1_500));
      const places = [random.pick(group.places)];
      // Now and then only one is left.
      if (kills + 1 < KILLS && random.chance(0.3)) {
        places.push(random.pick(group.places.filter((place) => place !== places[0])));
      }
      await Promise.all(places.map((place) => group.kill(place)));
      kills += places.length;
      takeOvers.push(await audit.handled(TAKE_OVER));
      await audit.jobs();
      await Promise.all(places.map((place) => group.begin(place)));
    }
    // Long enough for the streams that are open to be told.
    await delay(500);
  })();
  try {
    await Promise.race([work, load]);
  } finally {
    stop.abort();
    await Promise.allSettled([work, load]);
  }
  await Promise.all([work, load]);
  const again = await audit.all(group, result);
  const { created, unknown, refused, reads } = result;
  t.diagnostic(
    `${created.length} users and ${ledger.acknowledgedDeliveries} deliveries acknowledged or found, ${reads} users read, ` +
      `${unknown} unknown, ${refused.size} refused; ${again} deliveries handled again; ` +
      `the others took over within ${Math.max(...takeOvers).toFixed(0)} ms; ` +
      `${group.subscribers.length} streams told of ${group.subscribers.reduce((sum, { size }) => sum + size, 0)} users`,
  );
  // A busy machine does less in the same time.
  const few = Math.min(created.length, reads, ledger.acknowledgedDeliveries);
  assert.ok(few > 10, `there was load: ${few}`);
});
