import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Machine, type PatroniCluster, withoutPatroni } from '../support/patroni.ts';
import type { PorticoProcess } from '../support/portico-process.ts';
import { inFull, proofCount, proofSeed, withoutControls } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { runShown, shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { hostsRoute, type Route, sql, startCluster, startRoutes } from './cluster/guide.ts';
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
 * meanwhile those of two pools, one every 100 ms, and of a notifier, one every 250 ms.
 */
const MOST_CONNECTIONS = 50;
const MOST_PER_SECOND = 2 * 10 + 4;
/** Sets how many switchovers are measured; unset, none. */
const SWITCHOVERS = 'PORTICO_PROOF_SWITCHOVERS';
/** A fail-over ends within this, or it hangs, in milliseconds. */
const HANGS = 120_000;

const LIST = shownCommand('docs/CLUSTER.md', /^patronictl .* list$/);
const SWITCHOVER = shownCommand('docs/CLUSTER.md', /^patronictl .* switchover /);
const REINIT = shownCommand('docs/CLUSTER.md', /^patronictl .* reinit /);

interface Leader {
  readonly machine: Machine;
  /** When it was none that only follows, and when a commit was confirmed, in milliseconds. */
  readonly promotedAt: number;
  readonly writesAt: number;
}

/** The first of the machines that takes writes, asked as often as possible without Portico. */
async function leaderOf(cluster: PatroniCluster, machines: readonly Machine[]): Promise<Leader> {
  let found = false;
  const deadline = performance.now() + HANGS;
  const ask = async (machine: Machine): Promise<Leader> => {
    while (!found && performance.now() < deadline) {
      const url = cluster.url('postgres', machine);
      const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
      client.on('error', () => {});
      try {
        await client.connect();
        for (; !found; await delay(5)) {
          const { rows } = await client.query('SELECT pg_is_in_recovery() AS follows');
          if (rows[0].follows === true) continue;
          const promotedAt = performance.now();
          await client.query('INSERT INTO probe VALUES (1)');
          found = true;
          return { machine, promotedAt, writesAt: performance.now() };
        }
      } catch {
        // It does not run, or no longer.
        await delay(5);
      } finally {
        await client.end().catch(() => {});
      }
    }
    throw new Error(`${machine.name} takes no writes`);
  };
  return Promise.any(machines.map(ask));
}

/** How many connections Portico has opened on a server since its log was `before`. */
function opened(log: string, before: string): number {
  return log.slice(before.length).split('connection authorized: user=portico ').length - 1;
}

interface Load {
  /** Resolves once more was acknowledged. */
  more(): Promise<void>;
  /** Resolves once a write has waited for its outcome in vain, or one that was sent after this call is acknowledged. */
  unanswered(): Promise<void>;
}

interface Way {
  readonly name: string;
  prepare?(cluster: PatroniCluster, old: Machine): Promise<void>;
  /** Which machines may lead afterwards. */
  candidates(machines: readonly Machine[], old: Machine): readonly Machine[];
  /** Takes its place from the leader. */
  act(cluster: PatroniCluster, old: Machine, load: Load): void | Promise<void>;
  /** Whether the machine has to be started again. */
  readonly isDead?: boolean;
}

const others = (machines: readonly Machine[], old: Machine) => machines.filter((each) => each !== old);

const SWITCH: Way = {
  name: 'a switchover',
  candidates: others,
  async act(_, old) {
    const { stdout } = await control(LIST, old);
    const [, candidate = ''] = /\| (db\d) .*Sync Standby/.exec(stdout) ?? [];
    const { code, stderr } = await control(SWITCHOVER, old, candidate);
    assert.equal(code, 0, `${stdout}${stderr}`);
  },
};

const WAYS: readonly Way[] = [
  {
    name: 'the machine of the leader is killed, with the leader of etcd',
    prepare: (cluster, old) => cluster.leadEtcd(old),
    candidates: others,
    act: (cluster, old) => cluster.kill(old),
    isDead: true,
  },
  {
    name: 'the postmaster of the leader is killed',
    candidates: (machines) => machines,
    act: (cluster, old) => cluster.killPostmaster(old),
  },
  SWITCH,
  {
    // Patroni cannot record that no replica may be promoted.
    name: 'no replica answers, and then the machine of the leader is killed, whose Patroni hangs',
    candidates: others,
    async act(cluster, old, load) {
      cluster.freezePatroni(old);
      await killLast(cluster, old, load.unanswered);
    },
    isDead: true,
  },
];

/** Of what the leader commits while the other machines are dead they have nothing. */
const LEADER_LAST: Way = {
  name: 'the other machines are killed, and then that of the leader',
  candidates: others,
  act: (cluster, old, load) => killLast(cluster, old, load.more),
  isDead: true,
};

async function killLast(cluster: PatroniCluster, old: Machine, before: () => Promise<void>): Promise<void> {
  const rest = others(cluster.machines, old);
  // Without a majority of etcd it would not lead any more.
  for (const machine of rest) cluster.kill(machine, 'database');
  await before();
  cluster.kill(old);
  for (const machine of rest) await cluster.start(machine);
}

/** Runs a command of the document, which names db1 as the leader and db2 as the one that is to lead. */
async function control(shown: typeof LIST, leader: Machine, candidate = ''): ReturnType<typeof runShown> {
  const names = { db1: '{leader}', db2: candidate, '{leader}': leader.name };
  return runShown(shown, {
    cwd: leader.folder,
    // Its program asks for a language.
    env: { LC_ALL: 'C.UTF-8', HOME: leader.folder },
    names: { ...names, '/etc/patroni/config.yml': leader.config },
  });
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
  { ways, synchronous = true, routes }: Proof,
): Promise<readonly number[]> {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  await using cleanup = new AsyncDisposableStack();
  const cluster = cleanup.use(await startCluster({ synchronous }));
  const folder = cleanup.use(await temporaryFolder()).path;
  const { machines } = cluster;
  const taken = await routes(cluster);
  t.diagnostic(`${taken.length} processes find the leader by ${taken.map(({ by }) => by).join(', ')}`);
  const databaseUrl = (place: number) => taken[place]?.url ?? '';
  const group = cleanup.use(await Group.start({ folder, databaseUrl, count: taken.length }));
  const ledger = new Ledger();
  const result: LoadResult = { created: [], ordered: [], refused: new Set(), unknown: 0, reads: 0 };
  const { created } = result;
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
        `connections there in ${seconds.toFixed(1)} s; ${led.name} leads`,
    );
    const most = (MOST_CONNECTIONS + seconds * MOST_PER_SECOND) * taken.length;
    assert.ok(connections < most, `${connections} connections`);
  };
  const work = (async () => {
    for (const way of ways) await failOver(way);
    await more();
    if (inFull && ways === WAYS) await copyAnew(cluster);
  })();
  try {
    await Promise.race([work, loading]);
  } finally {
    stop.abort();
    await Promise.allSettled([work, loading]);
  }
  await Promise.all([work, loading]);
  const leader = cluster.url('portico', await cluster.whole());
  const audit = new Audit({ folder, ledger, sql: (text) => sql(leader, text) });
  const again = await audit.all(group, result);
  for (const { portico } of group.running) assert.equal(portico.child.exitCode, null, 'the processes go on');
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
  await prove(t, { ways: inFull ? WAYS : WAYS.slice(0, 1), routes });
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

test('how soon a process acknowledges after the new leader takes writes', {
  skip: withoutPatroni() || (process.env[SWITCHOVERS] === undefined && `${SWITCHOVERS} sets how many times`),
  timeout: 7_200_000,
}, async (t) => {
  const ways = Array.from({ length: proofCount(SWITCHOVERS, 1) }, () => SWITCH);
  const routes = async (cluster: PatroniCluster) => Array.from({ length: 3 }, () => hostsRoute(cluster));
  const all = (await prove(t, { ways, routes })).toSorted((a, b) => a - b);
  const quantile = (part: number) => all[Math.ceil(part * all.length) - 1]?.toFixed(0);
  t.diagnostic(
    `${all.length} times, in ms: median ${quantile(0.5)}, 90 % ${quantile(0.9)}, 99 % ${quantile(0.99)}, ` +
      `longest ${quantile(1)}`,
  );
});
