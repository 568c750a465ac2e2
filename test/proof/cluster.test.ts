import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { blocks } from '../documents/documents.ts';
import { freePort } from '../support/free-port.ts';
import { type PatroniCluster, startPatroni, withoutPatroni } from '../support/patroni.ts';
import { inFull, proofSeed, rounds, withoutControls } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { runShown, settingsOf, shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { Ledger } from './kill/ledger.ts';
import { Audit, LOSS } from './replicas/audit.ts';
import { Group } from './replicas/group.ts';
import { type LoadResult, runLoad } from './replicas/load.ts';

const SEED = proofSeed();
const CONNECTIONS = 4;
/** Users that are acknowledged before each fail-over, and after it. */
const LOAD = 50;
/**
 * What two processes open on one server: all of their connections as they lose the old one and as they find the new one,
 * and meanwhile those of four pools, one every 100 ms, and of two notifiers, one every 250 ms.
 */
const MOST_CONNECTIONS = 100;
const MOST_PER_SECOND = 4 * 10 + 2 * 4;
/** A fail-over ends within this, or it hangs, in milliseconds. */
const HANGS = 120_000;

const SERVE = shownCommand('docs/CLUSTER.md', /@db1:.*npm start$/);
const LIST = shownCommand('docs/CLUSTER.md', /^patronictl .* list$/);
const SWITCHOVER = shownCommand('docs/CLUSTER.md', /^patronictl .* switchover /);
const SERVE_BALANCED = shownCommand('docs/CLUSTER.md', /@db:5000.*npm start$/);
const HAPROXY = blocks('haproxy').find(({ path }) => path === 'docs/CLUSTER.md')?.text ?? '';
const ETCD = blocks('ini').find(({ path }) => path === 'docs/CLUSTER.md')?.text ?? '';
const SHOWN = blocks('yaml').find(({ path }) => path === 'docs/CLUSTER.md')?.text ?? '';
const REINIT = shownCommand('docs/CLUSTER.md', /^patronictl .* reinit /);
/** Settings of the document that take too long for a test, and what a server of a test needs. */
const TEST_SETTINGS = {
  'ttl: 20': 'ttl: 6',
  'loop_wait: 5': 'loop_wait: 1',
  'retry_timeout: 5': 'retry_timeout: 2',
  '  data_dir:':
    '  parameters: { unix_socket_directories: "", shared_buffers: 32MB, log_connections: "on" }\n  data_dir:',
};

type Machine = PatroniCluster['machines'][number];

/** The texts of the document, with those of the test. */
function replaced(text: string, names: Readonly<Record<string, string>>): string {
  return Object.entries(names).reduce((left, [shown, actual]) => {
    assert.ok(left.includes(shown), `docs/CLUSTER.md has no ${shown}`);
    return left.replaceAll(shown, actual);
  }, text);
}

/** The cluster of the document, with the user and the database that its URL names. */
async function startCluster(synchronous: boolean): Promise<PatroniCluster> {
  const mode = { 'synchronous_mode: true': 'synchronous_mode: false' };
  const cluster = await startPatroni({
    configuration: (machine, etcd, bin) =>
      replaced(SHOWN, {
        ...(synchronous ? {} : mode),
        'db1:2379,db2:2379,db3:2379': etcd,
        '0.0.0.0:8008': `127.0.0.1:${machine.api}`,
        'db1:8008': `127.0.0.1:${machine.api}`,
        '0.0.0.0:5432': `127.0.0.1:${machine.port}`,
        'db1:5432': `127.0.0.1:${machine.port}`,
        'name: db1': `name: ${machine.name}`,
        '/var/lib/postgresql/15/portico': join(machine.folder, 'data'),
        '/usr/lib/postgresql/15/bin': bin,
        '/var/lib/postgresql/': `${machine.folder}/`,
        '10.0.0.0/24': '127.0.0.1/32',
        ...TEST_SETTINGS,
      }),
    etcdSettings: (client, peer) =>
      Object.fromEntries(
        replaced(ETCD, {
          'db1=http://db1:2380,db2=http://db2:2380,db3=http://db3:2380': `db1=http://${peer}`,
          '0.0.0.0:2379': client,
          'db1:2379': client,
          '0.0.0.0:2380': peer,
          'http://db1:2380': `http://${peer}`,
        })
          .split('\n')
          .filter((line) => line.startsWith('ETCD_'))
          .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      ),
    synchronous,
  });
  const url = cluster.url('postgres', await cluster.whole());
  await sql(url, `CREATE ROLE portico LOGIN PASSWORD 'secret'`);
  await sql(url, 'CREATE DATABASE portico OWNER portico');
  await sql(url, 'CREATE TABLE probe (n int)');
  return cluster;
}

/** The URL of the document's HAProxy, which it starts; undefined where none is installed. */
async function balancedUrl(cluster: PatroniCluster): Promise<string | undefined> {
  try {
    execFileSync('haproxy', ['-v'], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  const port = await freePort();
  const servers = cluster.machines.map(({ name, port, api }) => [
    `${name}:5432 check port 8008`,
    `127.0.0.1:${port} check port ${api}`,
  ]);
  await cluster.startHaproxy(
    replaced(HAPROXY, { ':5000': `127.0.0.1:${port}`, ...Object.fromEntries(servers) }),
  );
  const { DATABASE_URL: url = '' } = settingsOf(SERVE_BALANCED, { 'db:5000': `127.0.0.1:${port}` });
  // Until its first checks it takes every member for the leader, in turn.
  await waitFor('HAProxy to find the leader', async () => {
    for (let i = 0; i < 2 * servers.length; i++) {
      const rows = await sql(url, 'SELECT 1 WHERE NOT pg_is_in_recovery()').catch(() => []);
      if (rows.length === 0) return false;
    }
    return true;
  });
  return url;
}

async function sql(url: string, text: string): Promise<readonly (readonly unknown[])[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<unknown[]>({ text, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

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

interface Way {
  readonly name: string;
  /** Which machines may lead afterwards. */
  candidates(machines: readonly Machine[], old: Machine): readonly Machine[];
  /** Takes its place from the leader. */
  act(cluster: PatroniCluster, old: Machine, moreLoad: () => Promise<void>): void | Promise<void>;
  /** Whether the machine has to be started again. */
  readonly isDead?: boolean;
}

const others = (machines: readonly Machine[], old: Machine) => machines.filter((each) => each !== old);

const WAYS: readonly Way[] = [
  {
    name: 'the machine of the leader is killed',
    candidates: others,
    act: (cluster, old) => cluster.kill(old),
    isDead: true,
  },
  {
    name: 'the postmaster of the leader is killed',
    candidates: (machines) => machines,
    act: (cluster, old) => cluster.killPostmaster(old),
  },
  {
    name: 'a switchover',
    candidates: others,
    async act(_, old) {
      const { stdout } = await control(LIST, old);
      const [, candidate = ''] = /\| (db\d) .*Sync Standby/.exec(stdout) ?? [];
      const { code, stderr } = await control(SWITCHOVER, old, candidate);
      assert.equal(code, 0, `${stdout}${stderr}`);
    },
  },
];

/** Of what the leader commits while the other machines are dead they have nothing. */
const LEADER_LAST: Way = {
  name: 'the other machines are killed, and then that of the leader',
  candidates: others,
  async act(cluster, old, moreLoad) {
    const rest = others(cluster.machines, old);
    for (const machine of rest) cluster.kill(machine);
    await moreLoad();
    cluster.kill(old);
    for (const machine of rest) await cluster.start(machine);
  },
  isDead: true,
};

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

/** Takes its place from the leader in these ways, one after the other, under load, and compares everything at the end. */
async function prove(t: TestContext, ways: readonly Way[], synchronous: boolean): Promise<void> {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  await using cleanup = new AsyncDisposableStack();
  const cluster = cleanup.use(await startCluster(synchronous));
  const folder = cleanup.use(await temporaryFolder()).path;
  const { machines } = cluster;
  const hosts = machines.map(({ port }) => `127.0.0.1:${port}`).join();
  const { DATABASE_URL: url = '' } = settingsOf(SERVE, { 'db1:5432,db2:5432,db3:5432': hosts });
  const balanced = await balancedUrl(cluster);
  t.diagnostic(
    `one process finds the leader by three hosts, the other by ${balanced === undefined ? 'them too' : 'HAProxy'}`,
  );
  const databaseUrl = (place: number) => (place === 0 ? url : (balanced ?? url));
  const group = cleanup.use(await Group.start({ folder, databaseUrl, count: 2 }));
  const ledger = new Ledger();
  const result: LoadResult = { created: [], ordered: [], refused: new Set(), unknown: 0, reads: 0 };
  const { created } = result;
  const stop = new AbortController();
  const next = () => group.next();
  const random = seededRandom(SEED);
  const load = runLoad({ next, ledger, random, connections: CONNECTIONS, signal: stop.signal }, result);
  const moreLoad = async () => {
    const before = created.length;
    await waitFor('more load', () => stop.signal.aborted || created.length > before + LOAD);
  };

  const failOver = async ({ name, candidates, act, isDead }: Way) => {
    const old = await cluster.whole();
    await moreLoad();
    const health = new HealthWatch(group);
    const logs = await Promise.all(machines.map((machine) => cluster.log(machine)));
    const began = performance.now();
    const acting = act(cluster, old, moreLoad);
    const [{ machine, promotedAt, writesAt }] = await Promise.all([
      leaderOf(cluster, candidates(machines, old)),
      acting,
    ]);
    const first = await waitFor(
      'a write to be acknowledged',
      () =>
        stop.signal.aborted
          ? Number.NaN
          : created.find(({ answeredAt }) => answeredAt >= promotedAt)?.answeredAt,
      HANGS,
    );
    const last = created.findLast(({ answeredAt }) => answeredAt < promotedAt)?.answeredAt ?? began;
    const connections = opened(await cluster.log(machine), logs[machines.indexOf(machine)] ?? '');
    const seconds = (performance.now() - began) / 1_000;
    await moreLoad();
    if (isDead === true) await cluster.start(old);
    const led = await cluster.whole();
    const ms = (time: number) => `${time.toFixed(0)} ms`;
    t.diagnostic(
      `${name} (${old.name}): ${machine.name} no longer followed after ${ms(promotedAt - began)} and committed after ` +
        `${ms(writesAt - began)}; Portico's first commit was acknowledged ${ms(first - writesAt)} after that, ` +
        `${ms(first - last)} after its last one; ${await health.end(began)}; it opened ${connections} connections there ` +
        `in ${seconds.toFixed(1)} s; ${led.name} leads`,
    );
    assert.ok(connections < MOST_CONNECTIONS + seconds * MOST_PER_SECOND, `${connections} connections`);
  };
  const work = (async () => {
    for (const way of ways) await failOver(way);
    await moreLoad();
    if (inFull && synchronous) await copyAnew(cluster);
  })();
  try {
    await Promise.race([work, load]);
  } finally {
    stop.abort();
    await Promise.allSettled([work, load]);
  }
  await Promise.all([work, load]);
  const leader = cluster.url('portico', await cluster.whole());
  const audit = new Audit({ folder, ledger, sql: (text) => sql(leader, text) });
  const again = await audit.all(group, result);
  for (const { portico } of group.running) assert.equal(portico.child.exitCode, null, 'the processes go on');
  t.diagnostic(
    `${created.length} users, ${ledger.acknowledgedDeliveries} deliveries and ${ledger.rows.acknowledged} changes of rows ` +
      `acknowledged or found, ${result.reads} users read, ${result.unknown} unknown, ${result.refused.size} refused; ` +
      `${again} deliveries handled again`,
  );
}

test(
  'nothing acknowledged is lost by a fail-over of the cluster of the guide',
  {
    skip: withoutPatroni(),
    timeout: 900_000,
  },
  (t) => prove(t, WAYS.slice(0, rounds(WAYS.length)), true),
);

test('control: without synchronous mode, what was acknowledged is found to be lost', {
  skip: withoutPatroni() || withoutControls,
  timeout: 900_000,
}, async (t) => {
  const found = await prove(t, [LEADER_LAST], false).then(
    () => 'nothing',
    (error: Error) => error.message,
  );
  t.diagnostic(`found: ${found.split('\n')[0]}`);
  assert.match(found, LOSS);
});
