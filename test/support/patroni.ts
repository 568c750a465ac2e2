import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, chown, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { freePort } from './free-port.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

const versionOf = (bin: string) => Number(bin.split('/').at(-2));
/** The programs of Debian's newest PostgreSQL; undefined where none is installed. */
const BIN = globSync('/usr/lib/postgresql/*/bin').sort((a, b) => versionOf(b) - versionOf(a))[0];
/** The user that everything runs as when the tests run as root, which PostgreSQL refuses. */
const NOBODY = 65_534;
const AS_USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
/** How long a cluster may take to form, or to be whole again, in milliseconds. */
const FORMS = 180_000;

/** Why there can be no cluster here, or false. */
export function withoutPatroni(): string | false {
  if (BIN === undefined) return 'needs PostgreSQL (Debian package postgresql)';
  for (const [program, debian] of [
    ['patroni', 'patroni'],
    ['etcd', 'etcd-server'],
  ] as const) {
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore' });
    } catch {
      return `needs ${program} (Debian package ${debian})`;
    }
  }
  return false;
}

/** What stands for a machine: a folder, with the processes of Patroni and of its PostgreSQL, which work in it. */
interface Machine {
  readonly name: string;
  readonly folder: string;
  /** The configuration of Patroni. */
  readonly config: string;
  /** The port of PostgreSQL. */
  readonly port: number;
  /** The port of Patroni's own API. */
  readonly api: number;
}

/** A member as Patroni tells of it. */
interface Told {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly timeline?: number;
}

/** Three PostgreSQL under Patroni and one etcd, in a temporary folder. */
export interface PatroniCluster extends AsyncDisposable {
  readonly machines: readonly Machine[];
  /** The URL of a database for the superuser on the machines. */
  url(database: string, ...machines: readonly Machine[]): string;
  /** Resolves once every member runs and, if commits wait for one, one is synchronous; to the leader. */
  whole(): Promise<Machine>;
  /** Ends all processes of a machine at once, as a loss of its power does. */
  kill(machine: Machine): void;
  /** Ends PostgreSQL as a crash of its first process does; Patroni goes on. */
  killPostmaster(machine: Machine): void;
  /** Starts Patroni on a machine. */
  start(machine: Machine): Promise<void>;
  /** Runs HAProxy beside the machines. */
  startHaproxy(configuration: string): Promise<void>;
  /** All that Patroni and PostgreSQL of a machine have said. */
  log(machine: Machine): Promise<string>;
}

interface PatroniOptions {
  /** Makes the configuration of Patroni on a machine. */
  configuration(machine: Machine, etcd: string, bin: string): string;
  /** Makes the environment of etcd. */
  etcdSettings(client: string, peer: string): NodeJS.ProcessEnv;
  /** Whether commits wait for a replica by the configuration. */
  readonly synchronous: boolean;
}

export async function startPatroni({
  configuration,
  etcdSettings,
  synchronous,
}: PatroniOptions): Promise<PatroniCluster> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  await chmod(folder, 0o711);
  cleanup.use(endProcessesIn(folder));
  const run = async (command: string, words: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}) => {
    await using log = await open(join(cwd, 'log'), 'a');
    const child = spawn(command, words, {
      cwd,
      env: { PATH: process.env.PATH, HOME: cwd, ...env },
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      ...AS_USER,
    });
    child.on('error', () => {});
    child.unref();
  };
  const makeFolder = async (name: string) => {
    const made = join(folder, name);
    await mkdir(made, { mode: 0o700 });
    if (AS_USER.uid !== undefined) await chown(made, AS_USER.uid, AS_USER.gid);
    return made;
  };

  const etcdFolder = await makeFolder('etcd');
  const etcd = `127.0.0.1:${await freePort()}`;
  const peers = `127.0.0.1:${await freePort()}`;
  await run('etcd', [], etcdFolder, etcdSettings(etcd, peers));
  await waitFor('etcd', () =>
    fetch(`http://${etcd}/health`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );

  const machines: Machine[] = [];
  for (const name of ['db1', 'db2', 'db3']) {
    const own = await makeFolder(name);
    const config = join(own, 'config.yml');
    const machine = { name, folder: own, config, port: await freePort(), api: await freePort() };
    await writeFile(config, configuration(machine, etcd, BIN ?? ''));
    machines.push(machine);
  }
  const start = (machine: Machine) => run('patroni', [machine.config], machine.folder);
  const whole = () =>
    waitFor(
      'the cluster to be whole',
      async () => {
        const told = await askOne(machines);
        const leader = told.find(({ role, state }) => role === 'leader' && state === 'running');
        const isWhole =
          told.length === machines.length &&
          told.every(
            ({ state, timeline }) => /^(?:running|streaming)$/.test(state) && timeline === leader?.timeline,
          ) &&
          (!synchronous || told.some(({ role }) => role === 'sync_standby'));
        return isWhole && machines.find(({ name }) => name === leader?.name);
      },
      FORMS,
    ).catch(async (error: Error) => {
      const logs = await Promise.all(machines.map((each) => log(each)));
      throw new Error([error.message, ...logs.map((text) => text.slice(-3_000))].join('\n\n'), {
        cause: error,
      });
    });
  const log = (machine: Machine) => readFile(join(machine.folder, 'log'), 'utf8');
  for (const machine of machines) await start(machine);
  await whole();
  const rest = cleanup.move();
  return {
    machines,
    url: (database, ...on) =>
      `postgres://postgres:secret-1@${on.map(({ port }) => `127.0.0.1:${port}`).join()}/${database}`,
    whole,
    kill(machine) {
      // Patroni first, so that it starts nothing again.
      for (let all = processesIn(machine.folder); all.length > 0; all = processesIn(machine.folder)) {
        for (const pid of all.toSorted((a, b) => a - b)) kill(pid);
      }
    },
    killPostmaster(machine) {
      kill(Number(readFileSync(join(machine.folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]));
    },
    start,
    async startHaproxy(text) {
      const own = await makeFolder('haproxy');
      await writeFile(join(own, 'haproxy.cfg'), text);
      await run('haproxy', ['-f', 'haproxy.cfg'], own);
    },
    log,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** What the first member that answers tells of all of them. */
async function askOne(machines: readonly Machine[]): Promise<readonly Told[]> {
  for (const { api } of machines) {
    try {
      const reply = await fetch(`http://127.0.0.1:${api}/cluster`, { signal: AbortSignal.timeout(2_000) });
      return ((await reply.json()) as { readonly members: readonly Told[] }).members;
    } catch {
      // It does not run.
    }
  }
  return [];
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The processes that work in a folder. */
function processesIn(folder: string): readonly number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.filter((pid) => {
    try {
      return `${readlinkSync(`/proc/${pid}/cwd`)}${sep}`.startsWith(`${folder}${sep}`);
    } catch {
      // It has ended meanwhile.
      return false;
    }
  });
}

/**
 * When this is disposed of, and when this process ends however it does, every process that works in the folder is ended:
 * a shell waits for the end of its input. PostgreSQL ends by a signal that lets it give back its shared memory.
 */
function endProcessesIn(folder: string): AsyncDisposable {
  const script = `read _
    all() { for p in /proc/[0-9]*; do case "$(readlink "$p/cwd")/" in "$0"/*) echo "\${p#/proc/}";; esac; done; }
    for p in $(all); do [ "$(cat /proc/$p/comm)" = postgres ] || kill -KILL "$p"; done
    for p in $(all); do kill -QUIT "$p"; done
    i=0
    while [ -n "$(all)" ] && [ $((i += 1)) -lt 100 ]; do sleep 0.05; done
    while [ -n "$(all)" ]; do for p in $(all); do kill -KILL "$p"; done; sleep 0.05; done`;
  const watch = spawn('/bin/sh', ['-c', script, folder], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watch.stdin.on('error', () => {});
  const ended = once(watch, 'exit');
  return {
    async [Symbol.asyncDispose]() {
      watch.stdin.end();
      await ended;
    },
  };
}
