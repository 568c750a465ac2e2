import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Machine, PatroniCluster } from '../../support/patroni.ts';
import { runShown, shownCommand } from '../../support/shown-commands.ts';

/** A fail-over ends within this, or it hangs, in milliseconds. */
export const HANGS = 120_000;

const LIST = shownCommand('docs/CLUSTER.md', /^patronictl .* list$/);
const SWITCHOVER = shownCommand('docs/CLUSTER.md', /^patronictl .* switchover /);

interface Leader {
  readonly machine: Machine;
  /** When it was none that only follows, and when a commit was confirmed, in milliseconds. */
  readonly promotedAt: number;
  readonly writesAt: number;
}

/** The first of the machines that takes writes, asked as often as possible without Portico. */
export async function leaderOf(cluster: PatroniCluster, machines: readonly Machine[]): Promise<Leader> {
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

export interface Load {
  /** Resolves once more was acknowledged. */
  more(): Promise<void>;
  /** Resolves once a write has waited for its outcome in vain, or one that was sent after this call is acknowledged. */
  unanswered(): Promise<void>;
}

export interface Way {
  readonly name: string;
  prepare?(cluster: PatroniCluster, old: Machine): Promise<void>;
  /** Which machines may lead afterwards. */
  candidates(machines: readonly Machine[], old: Machine): readonly Machine[];
  /** Takes its place from the leader. */
  act(cluster: PatroniCluster, old: Machine, load: Load): void | Promise<void>;
  /** Whether the machine has to be started again. */
  readonly isDead?: boolean;
}

export const others = (machines: readonly Machine[], old: Machine) => machines.filter((each) => each !== old);

export const SWITCH: Way = {
  name: 'a switchover',
  candidates: others,
  async act(_, old) {
    const { stdout } = await control(LIST, old);
    const [, candidate = ''] = /\| (db\d) .*Sync Standby/.exec(stdout) ?? [];
    const { code, stderr } = await control(SWITCHOVER, old, candidate);
    assert.equal(code, 0, `${stdout}${stderr}`);
  },
};

export const POSTMASTER: Way = {
  name: 'the postmaster of the leader is killed',
  candidates: (machines) => machines,
  act: (cluster, old) => cluster.killPostmaster(old),
};

export const WAYS: readonly Way[] = [
  {
    name: 'the machine of the leader is killed, with the leader of etcd',
    prepare: (cluster, old) => cluster.leadEtcd(old),
    candidates: others,
    act: (cluster, old) => cluster.kill(old),
    isDead: true,
  },
  POSTMASTER,
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
export const LEADER_LAST: Way = {
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
export async function control(
  shown: typeof LIST,
  leader: Machine,
  candidate = '',
): ReturnType<typeof runShown> {
  const names = { db1: '{leader}', db2: candidate, '{leader}': leader.name };
  return runShown(shown, {
    cwd: leader.folder,
    // Its program asks for a language.
    env: { LC_ALL: 'C.UTF-8', HOME: leader.folder },
    names: { ...names, '/etc/patroni/config.yml': leader.config },
  });
}
