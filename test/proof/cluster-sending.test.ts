import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { withoutPatroni } from '../support/patroni.ts';
import { proofSeed, withoutControls } from '../support/proof-settings.ts';
import { hostsRoute, startCluster } from './cluster/guide.ts';
import { LEADER_LAST, leaderOf, POSTMASTER, SWITCH, WAYS, type Way } from './cluster/ways.ts';
import { startSending } from './sending/round.ts';

const SEED = proofSeed();
/** Events that are acknowledged before each fail-over, and after it. */
const LOAD = 50;
/** How long the load goes on before and after a fail-over, in milliseconds. */
const CALM = 1_000;

interface Proof {
  readonly ways: readonly Way[];
  readonly synchronous?: boolean;
  /** How long events may take to arrive at the end, in milliseconds of pauses. */
  readonly within?: number;
}

/** Two processes send events while the leader changes in these ways; compares what was acknowledged with what arrived. */
async function prove(t: TestContext, { ways, synchronous = true, within }: Proof): Promise<void> {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  await using cluster = await startCluster({ synchronous });
  const { machines } = cluster;
  const databaseUrl = hostsRoute(cluster).url;
  await using sending = await startSending({ seed: SEED, processes: 2, databaseUrl });
  const more = async (events = LOAD) => {
    for (let i = 0; i < events; i++) await sending.acknowledged();
  };
  // Most of what only a dead leader has had arrived before: what is missing is found by changes of endpoints.
  const load = { more: () => more(4 * LOAD), unanswered: () => more() };
  for (const { name, prepare, candidates, act, isDead } of ways) {
    const old = await cluster.whole();
    await prepare?.(cluster, old);
    await delay(CALM);
    await more();
    const acting = act(cluster, old, load);
    const [{ machine, promotedAt }] = await Promise.all([
      leaderOf(cluster, candidates(machines, old)),
      acting,
    ]);
    await more();
    const pause = performance.now() - promotedAt;
    if (isDead === true) await cluster.start(old);
    await delay(CALM);
    t.diagnostic(
      `${name} (${old.name}): ${machine.name} leads; ${LOAD} events acknowledged after ${pause.toFixed(0)} ms`,
    );
  }
  await cluster.whole();
  const { acknowledged, endpoints, certain, arrivals } = await sending.finish(within);
  t.diagnostic(
    `${acknowledged} events acknowledged, ${endpoints} endpoints asked for; ` +
      `${certain} arrivals were certain, ${arrivals} requests came`,
  );
  assert.ok(certain > 0 && endpoints > 0, 'there was load');
}

test(
  'through fail-overs of a cluster each endpoint gets the events to which it was subscribed',
  {
    skip: withoutPatroni() || withoutControls,
    timeout: 900_000,
  },
  (t) => prove(t, { ways: [...WAYS.slice(0, 1), POSTMASTER, SWITCH] }),
);

test('control: without synchronous mode, events that were acknowledged are found to be lost', {
  skip: withoutPatroni() || withoutControls,
  timeout: 900_000,
}, async (t) => {
  const proof = prove(t, { ways: [LEADER_LAST], synchronous: false, within: 10_000 });
  const found = await proof.then(
    () => 'nothing',
    (error: Error) => error.message,
  );
  t.diagnostic(`found: ${found.split('\n')[0]}`);
  // An endpoint that is gone is a 404 for whoever changes it.
  assert.match(found, /is lost for it|404|not subscribed/);
});
