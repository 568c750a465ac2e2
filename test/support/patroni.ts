import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, chown, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

const versionOf = (bin: string) => Number(bin.split('/').at(-2));
/** The programs of Debian's newest PostgreSQL; undefined where none is installed. */
const BIN = globSync('/usr/lib/postgresql/*/bin').sort((a, b) => versionOf(b) - versionOf(a))[0];
/** The user that everything runs as when the tests run as root, which PostgreSQL refuses. */
const NOBODY = 65_534;
const AS_USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
/** Pause before Patroni starts again, in milliseconds. */
const RESTART = 1_000;
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

/** What stands for a machine: Patroni and its PostgreSQL work in one folder, and a member of etcd in another. */
export interface Machine {
  readonly name: string;
  readonly folder: string;
  /** The configuration of Patroni. */
  readonly config: string;
  /** The port of PostgreSQL. */
  readonly port: number;
  /** The port of Patroni's own API. */
  readonly api: number;
  /** The addresses of etcd for its clients and for its other members. */
  readonly etcd: { readonly folder: string; readonly client: string; readonly peer: string };
}

/** What a member of etcd says of itself and of the one that leads. */
interface EtcdState {
  readonly header: { readonly member_id: string };
  readonly leader: string;
}

/** A member as Patroni tells of it. */
interface Told {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly timeline?: number;
}

/** Three machines with PostgreSQL under Patroni and etcd, in a temporary folder. */
export interface PatroniCluster extends AsyncDisposable {
  readonly machines: readonly Machine[];
  /** The folder of the programs of PostgreSQL. */
  readonly bin: string;
  /** A folder that all machines share. */
  readonly shared: string;
  /** The URL of a database for the superuser on the machines. */
  url(database: string, ...machines: readonly Machine[]): string;
  /** Resolves once every member runs and, if commits wait for one, one is synchronous; to the leader. */
  whole(): Promise<Machine>;
  /** Ends all processes of a machine at once, as a loss of its power does; or all but etcd. */
  kill(machine: Machine, what?: 'all' | 'database'): void;
  /** Stops Patroni of a machine where it is; PostgreSQL goes on. */
  freezePatroni(machine: Machine): void;
  /** Ends PostgreSQL as a crash of its first process does; Patroni goes on. */
  killPostmaster(machine: Machine): void;
  /** Starts Patroni on a machine, and etcd unless it runs. */
  start(machine: Machine): Promise<void>;
  /** Makes the etcd of a machine the one that leads. */
  leadEtcd(machine: Machine): Promise<void>;
  /** Runs a program beside the machines, with these files in its folder. */
  startBeside(
    program: string,
    words: readonly string[],
    files: Readonly<Record<string, string>>,
  ): Promise<void>;
  /** Runs a command of a shell to its end in the shared folder, as the user that everything runs as. */
  run(command: string): Promise<void>;
  /** All that Patroni and PostgreSQL of a machine have said. */
  log(machine: Machine): Promise<string>;
}

type Place = Pick<PatroniCluster, 'bin' | 'shared'>;

interface PatroniOptions {
  /** Makes the configuration of Patroni on a machine. */
  configuration(machine: Machine, machines: readonly Machine[], place: Place): string;
  /** Makes the environment of etcd on a machine. */
  etcdSettings(machine: Machine, machines: readonly Machine[]): NodeJS.ProcessEnv;
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
    return child;
  };
  let isOver = false;
  cleanup.defer(() => {
    isOver = true;
  });
  /** Runs Patroni, which ends if it starts before etcd answers: it starts again, as a unit of systemd does. */
  const runPatroni = async (machine: Machine): Promise<void> => {
    const child = await run('patroni', [machine.config], machine.folder);
    child.once('exit', (code) => {
      // Null for one that a test has killed.
      if (code === null || code === 0) return;
      const again = () => isOver || runPatroni(machine).catch(() => {});
      setTimeout(again, RESTART).unref();
    });
  };
  const makeFolder = async (name: string) => {
    const made = join(folder, name);
    await mkdir(made, { mode: 0o700 });
    if (AS_USER.uid !== undefined) await chown(made, AS_USER.uid, AS_USER.gid);
    return made;
  };

  const place = { bin: BIN ?? '', shared: await makeFolder('shared') };
  await makeFolder('shared/wal');
  const machines: Machine[] = [];
  const ports = new Set<number>();
  // None gets the port of another that does not listen yet.
  const distinctPort = async (): Promise<number> => {
    const port = await freePort();
    if (ports.has(port)) return distinctPort();
    ports.add(port);
    return port;
  };
  const address = async () => `127.0.0.1:${await distinctPort()}`;
  for (const name of ['db1', 'db2', 'db3']) {
    const own = await makeFolder(name);
    machines.push({
      name,
      folder: own,
      config: join(own, 'config.yml'),
      port: await distinctPort(),
      api: await distinctPort(),
      etcd: { folder: await makeFolder(`etcd-${name}`), client: await address(), peer: await address() },
    });
  }
  const start = async (machine: Machine) => {
    const { etcd } = machine;
    if (processesIn(etcd.folder).length === 0)
      await run('etcd', [], etcd.folder, etcdSettings(machine, machines));
    await runPatroni(machine);
  };
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
  for (const machine of machines) {
    await writeFile(machine.config, configuration(machine, machines, place));
    await start(machine);
  }
  await whole();
  const rest = cleanup.move();
  return {
    machines,
    ...place,
    url: (database, ...on) =>
      `postgres://postgres:secret-1@${on.map(({ port }) => `127.0.0.1:${port}`).join()}/${database}`,
    whole,
    kill({ folder: own, etcd }, what = 'all') {
      const folders = what === 'all' ? [etcd.folder, own] : [own];
      const running = () => folders.flatMap((each) => processesIn(each).toSorted((a, b) => a - b));
      // Patroni before PostgreSQL, so that it starts nothing again.
      for (let all = running(); all.length > 0; all = running()) for (const pid of all) kill(pid);
    },
    freezePatroni(machine) {
      // It is the oldest process of the machine.
      const pid = Math.min(...processesIn(machine.folder));
      process.kill(pid, 'SIGSTOP');
    },
    killPostmaster(machine) {
      kill(Number(readFileSync(join(machine.folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]));
    },
    start,
    leadEtcd: (machine) =>
      waitFor('etcd to have another leader', async () => {
        const states = await Promise.all(machines.map((each) => askEtcd(each, 'status')));
        const wanted = states[machines.indexOf(machine)]?.header.member_id;
        const leads = states.findIndex(({ header, leader }) => header.member_id === leader);
        if (machines[leads] === machine) return true;
        if (machines[leads] !== undefined)
          await askEtcd(machines[leads], 'transfer-leadership', { targetID: wanted });
        return false;
      }).then(() => {}),
    async startBeside(program, words, files) {
      const own = await makeFolder(program);
      for (const [name, text] of Object.entries(files)) await writeFile(join(own, name), text);
      await run(program, words, own);
    },
    async run(command) {
      const options = { cwd: place.shared, env: { PATH: process.env.PATH, HOME: place.shared }, ...AS_USER };
      await promisify(execFile)('sh', ['-c', command], options);
    },
    log,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

async function askEtcd({ etcd }: Machine, what: string, body: object = {}): Promise<EtcdState> {
  const options = { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(5_000) };
  const reply = await fetch(`http://${etcd.client}/v3/maintenance/${what}`, options);
  return (await reply.json()) as EtcdState;
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
