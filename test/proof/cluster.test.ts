import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type PatroniCluster, withoutPatroni } from '../support/patroni.ts';
import type { PorticoProcess } from '../support/portico-process.ts';
import { inFull, proofCount, proofSeed, withoutControls } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { hostsRoute, type Route, readingSettings, sql, startCluster, startRoutes } from './cluster/guide.ts';
import { ReplicaReader } from './cluster/reader.ts';
import {
  control,
  HANGS,
  LEADER_LAST,
  leaderOf,
  others,
  POSTMASTER,
  SWITCH,
  WAYS,
  type Way,
} from './cluster/ways.ts';
import { Ledger } from './kill/ledger.ts';
import { Audit, LOSS } from './replicas/audit.ts';
import { Group } from './replicas/group.ts';
import { type LoadResult, runLoad } from './replicas/load.ts';

const SEED = proofSeed();
const CONNECTIONS = 4;
/** Users that are acknowledged before each fail-over, and after it. */
const LOAD = 50;
/**
 * What a process opens on one server: all of its connections as it loses the old one and as it finds the new one, and
 * meanwhile those of two pools, one every 50 ms, and of a notifier, one every 250 ms.
 */
const MOST_CONNECTIONS = 50;
const MOST_PER_SECOND = 2 * 20 + 4;
/** Sets how many fail-overs of each way are measured; unset, none. */
const FAILOVERS = 'PORTICO_PROOF_CLUSTER_FAILOVERS';
/** By which replicas lag behind commits: for longer than a process waits before it looks whether they have its writes. */
const DELAYED = 'recovery_conf: { recovery_min_apply_delay: 1500ms }';

const REINIT = shownCommand('docs/CLUSTER.md', /^patronictl .* reinit /);

/** How many connections Portico has opened on a server since its log was `before`. */
function opened(log: string, before: string): number {
  return log.slice(before.length).split('connection authorized: user=portico ').length - 1;
}

/** Makes a member that follows anew, as the document does. */
async function copyAnew(cluster: PatroniCluster): Promise<void> {
  const leader = await cluster.whole();
  const [member] = others(cluster.machines, leader);
  assert.ok(member !== undefined);
  const copies = async () => (await cluster.log(member)).split('has been created using basebackup').length;
  const before = await copies();
  // The command names the member as the others name the leader.
  const { code, stdout, stderr } = await control(REINIT, member);
  assert.equal(code, 0, stdout + stderr);
  await waitFor('a copy', async () => (await copies()) > before, HANGS);
  await cluster.whole();
}

/** Asks every process for its health, again and again. */
class HealthWatch {
  readonly #unready: number[] = [];
  #ended = false;
  readonly #asking: Promise<unknown>;

  constructor({ running }: Group) {
    this.#asking = Promise.all(running.map(({ portico }) => this.#ask(portico.urls.management ?? '')));
  }

  /** Resolves to what there is to tell, once all of them are ready again. */
  async end(began: number): Promise<string> {
    this.#ended = true;
    await this.#asking;
    const [first, last] = [this.#unready[0], this.#unready.at(-1)];
    if (first === undefined || last === undefined) return 'readiness stayed';
    return `/readyz was 503 from ${(first - began).toFixed(0)} to ${(last - began).toFixed(0)} ms`;
  }

  async #ask(origin: string): Promise<void> {
    for (let isReady = false; !this.#ended || !isReady; await delay(50)) {
      const [live, ready] = await Promise.all(['/livez', '/readyz'].map((path) => fetch(`${origin}${path}`)));
      await Promise.all([live?.text(), ready?.text()]);
      assert.equal(live?.status, 200);
      isReady = ready?.status === 200;
      if (!isReady) this.#unready.push(performance.now());
    }
  }
}

interface Stored {
  readonly portico: PorticoProcess;
  readonly at: number;
}

interface Proof {
  readonly ways: readonly Way[];
  readonly synchronous?: boolean;
  /** Whether one more process reads from the replicas. */
  readonly reads?: boolean;
  /** The way to the leader of each process. */
  routes(cluster: PatroniCluster): Promise<readonly Route[]>;
}

/**
 * Takes its place from the leader in these ways, one after the other, under load, and compares everything at the end.
 * Resolves to how long the processes with nothing between them and the servers needed, each in each way, from the first
 * commit of a client beside them to their own first acknowledgement, in milliseconds.
 */
async function prove(
  t: TestContext,
  { ways, synchronous = true, reads = false, routes }: Proof,
): Promise<readonly number[]> {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  await using cleanup = new AsyncDisposableStack();
  const change = (text: string) => text.replace('  data_dir:', `  ${DELAYED}\n  data_dir:`);
  const cluster = cleanup.use(await startCluster({ synchronous, ...(reads && { change }) }));
  const folder = cleanup.use(await temporaryFolder()).path;
  const { machines } = cluster;
  const taken = await routes(cluster);
  t.diagnostic(`${taken.length} processes find the leader by ${taken.map(({ by }) => by).join(', ')}`);
  const databaseUrl = (place: number) => taken[place]?.url ?? '';
  const group = cleanup.use(await Group.start({ folder, databaseUrl, count: taken.length }));
  const ledger = new Ledger();
  const result: LoadResult = { created: [], ordered: [], refused: new Set(), unknown: 0, reads: 0 };
  const { created } = result;
  const settings = readingSettings(cluster);
  const reader = reads
    ? cleanup.use(
        await ReplicaReader.start({ cwd: folder, settings, ledger, random: seededRandom(SEED + 1) }, result),
      )
    : undefined;
  const stored: Stored[] = [];
  const own: number[] = [];
  const stop = new AbortController();
  const next = () => group.next();
  const random = seededRandom(SEED);
  const onStored = (portico: PorticoProcess) => stored.push({ portico, at: performance.now() });
  const loading = runLoad(
    { next, ledger, random, connections: CONNECTIONS, signal: stop.signal, onStored },
    result,
  );
  const more = async () => {
    const before = created.length;
    await waitFor('more load', () => stop.signal.aborted || created.length > before + LOAD);
  };
  const unanswered = async () => {
    const [users, unknown] = [created.length, result.unknown];
    const isOver = () => result.unknown > unknown || created.length > users + CONNECTIONS;
    await waitFor('a write without an answer', () => stop.signal.aborted || isOver());
  };

  const failOver = async ({ name, prepare, candidates, act, isDead }: Way) => {
    const old = await cluster.whole();
    await prepare?.(cluster, old);
    await more();
    await reader?.readsFrom(cluster, others(machines, old), HANGS);
    const health = new HealthWatch(group);
    const logs = await Promise.all(machines.map((machine) => cluster.log(machine)));
    const began = performance.now();
    const acting = act(cluster, old, { more, unanswered });
    const [{ machine, promotedAt, writesAt }] = await Promise.all([
      leaderOf(cluster, candidates(machines, old)),
      acting,
    ]);
    const firsts = await Promise.all(
      group.running.map(({ portico }) =>
        waitFor(
          'a write to be acknowledged',
          () =>
            stop.signal.aborted
              ? Number.NaN
              : stored.find((each) => each.portico === portico && each.at >= promotedAt)?.at,
          HANGS,
        ),
      ),
    );
    const readBy = await reader?.readsFrom(cluster, others(machines, machine), HANGS);
    const readAt = performance.now();
    const last = stored.findLast(({ at }) => at < promotedAt)?.at ?? began;
    own.push(
      ...firsts.filter((_, place) => taken[place]?.by === 'hosts').map((at) => Math.max(0, at - writesAt)),
    );
    const connections = opened(await cluster.log(machine), logs[machines.indexOf(machine)] ?? '');
    const seconds = (performance.now() - began) / 1_000;
    await more();
    if (isDead === true) await cluster.start(old);
    const led = await cluster.whole();
    const ms = (time: number) => `${time.toFixed(0)} ms`;
    const after = firsts.map((at, place) => `${taken[place]?.by} ${ms(at - writesAt)}`).join(', ');
    t.diagnostic(
      `${name} (${old.name}): ${machine.name} no longer followed after ${ms(promotedAt - began)} and committed after ` +
        `${ms(writesAt - began)}; Portico's first writes were acknowledged after that by ${after}, ` +
        `${ms(Math.min(...firsts) - last)} after its last one; ${await health.end(began)}; it opened ${connections} ` +
        `connections there in ${seconds.toFixed(1)} s; ${led.name} leads` +
        (readBy === undefined ? '' : `; ${readBy.name} was read ${ms(readAt - writesAt)} after that commit`),
    );
    // The process that reads from replicas asks every server for one.
    const most = (MOST_CONNECTIONS + seconds * MOST_PER_SECOND) * (taken.length + (reader ? 2 : 0));
    assert.ok(connections < most, `${connections} connections`);
  };
  const work = (async () => {
    for (const way of ways) await failOver(way);
    await more();
    if (inFull && ways === WAYS) await copyAnew(cluster);
  })();
  try {
    await Promise.race([work, loading, ...(reader ? [reader.working] : [])]);
  } finally {
    stop.abort();
    await Promise.allSettled([work, loading]);
  }
  await Promise.all([work, loading, reader?.end()]);
  const leader = cluster.url('portico', await cluster.whole());
  const audit = new Audit({ folder, ledger, sql: (text) => sql(leader, text) });
  const again = await audit.all(group, result);
  const processes = [...group.running, ...(reader ? [reader] : [])];
  for (const { portico } of processes) assert.equal(portico.child.exitCode, null, 'the processes go on');
  if (reader) t.diagnostic(`${reader.reads} users read by the process that reads from the replicas`);
  t.diagnostic(
    `${created.length} users, ${ledger.acknowledgedDeliveries} deliveries and ${ledger.rows.acknowledged} changes of rows ` +
      `acknowledged or found, ${result.reads} users read, ${result.unknown} unknown, ${result.refused.size} refused; ` +
      `${again} deliveries handled again`,
  );
  return own;
}

test('nothing acknowledged is lost by a fail-over of the cluster of the guide', {
  skip: withoutPatroni(),
  timeout: 900_000,
}, async (t) => {
  const routes = async (cluster: PatroniCluster) => (await startRoutes(cluster)).slice(0, inFull ? 3 : 2);
  await prove(t, { ways: inFull ? WAYS : WAYS.slice(0, 1), reads: true, routes });
});

test('control: without synchronous mode, what was acknowledged is found to be lost', {
  skip: withoutPatroni() || withoutControls,
  timeout: 900_000,
}, async (t) => {
  const found = await prove(t, { ways: [LEADER_LAST], synchronous: false, routes: startRoutes }).then(
    () => 'nothing',
    (error: Error) => error.message,
  );
  t.diagnostic(`found: ${found.split('\n')[0]}`);
  assert.match(found, LOSS);
});

for (const way of [SWITCH, POSTMASTER]) {
  test(`how soon a process acknowledges after the new leader takes writes: ${way.name}`, {
    skip: withoutPatroni() || (process.env[FAILOVERS] === undefined && `${FAILOVERS} sets how many times`),
    timeout: 7_200_000,
  }, async (t) => {
    const ways = Array.from({ length: proofCount(FAILOVERS, 1) }, () => way);
    const routes = async (cluster: PatroniCluster) => Array.from({ length: 3 }, () => hostsRoute(cluster));
    const all = (await prove(t, { ways, routes })).toSorted((a, b) => a - b);
    const quantile = (part: number) => all[Math.ceil(part * all.length) - 1]?.toFixed(0);
    t.diagnostic(
      `${all.length} times, in ms: median ${quantile(0.5)}, 90 % ${quantile(0.9)}, 99 % ${quantile(0.99)}, ` +
        `longest ${quantile(1)}`,
    );
  });
}
