import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { proofCount, proofSeed } from '../support/proof-settings.ts';
import { control } from '../support/source-copy.ts';
import { sendingRound } from './sending/round.ts';

// PORTICO_PROOF_SENDING_KILLS: how many kills per database.
const KILLS = proofCount('PORTICO_PROOF_SENDING_KILLS', 12);
const SEED = proofSeed();
const TIMEOUT = 300_000 + KILLS * 30_000;
const skip = withoutPostgres ?? false;

const rounds = [
  { name: 'one process on SQLite', processes: 1, skip: false, url: () => undefined },
  { name: 'one process on PostgreSQL', processes: 1, skip, url: postgresDatabase },
  { name: 'two processes on PostgreSQL', processes: 2, skip, url: postgresDatabase },
];
for (const { name, processes, skip, url } of rounds) {
  test(`${name}: through ${KILLS} kills each endpoint gets the events to which it was subscribed`, {
    skip,
    timeout: TIMEOUT,
  }, async (t) => {
    t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
    const result = await sendingRound({ seed: SEED, kills: KILLS, processes, databaseUrl: await url() });
    const { acknowledged, endpoints, certain, arrivals } = result;
    t.diagnostic(
      `${acknowledged} events acknowledged, ${endpoints} endpoints asked for; ` +
        `${certain} arrivals were certain, ${arrivals} requests came`,
    );
    // A busy machine does less in the same time.
    assert.ok(certain > 0 && endpoints > 0, 'there was load');
  });
}

const publisher = 'src/sending/publisher.ts';
control('events stored for the endpoints that another process knew are found to be lost', {
  edits: [
    {
      file: publisher,
      from: 'return { ...facts, jobs, tenant: { name: tenant, version, digest } };',
      to: 'return { ...facts, jobs };',
    },
  ],
  skip,
  timeout: TIMEOUT,
  async find(main) {
    const databaseUrl = await postgresDatabase();
    const round = { seed: SEED, kills: 2, processes: 2, databaseUrl, main, within: 10_000 };
    await assert.rejects(sendingRound(round), /is lost for it|not subscribed/);
  },
});
control('events of a key that are sent at the same time are found out of order', {
  edits: [{ file: publisher, from: 'orderKey: subscription.orderKey(body)', to: 'orderKey: null' }],
  timeout: TIMEOUT,
  find: (main) =>
    assert.rejects(
      sendingRound({ seed: SEED, kills: 2, processes: 1, databaseUrl: undefined, main, within: 10_000 }),
      /overtook/,
    ),
});
