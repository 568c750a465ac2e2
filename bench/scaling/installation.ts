import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';
import type { PostgresServer } from '../../test/support/postgres.ts';
import { type HttpRequest, type LoadResult, runLoad } from '../load/load.ts';
import { coreTime, cpuTime, memoryUse } from '../machine/process-use.ts';
import { median } from '../measure/statistics.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';

/** Several processes on one database, with the REST door and the webhook door. */
export interface Installation {
  readonly bench: Workbench;
  readonly postgres: PostgresServer;
  readonly url: string;
  readonly processes: readonly { readonly server: Server; readonly rest: string }[];
}

/** What an interval cost. Times are CPU seconds. */
export interface Cost {
  readonly seconds: number;
  readonly serverCpu: number;
  readonly processCpu: number;
  readonly loadCpu: number;
  /** Share of the core of the server, and of that of the processes, that other programs used. */
  readonly others: readonly [server: number, processes: number];
  readonly walBytes: number;
  /** Transactions that wrote. */
  readonly writes: number;
}

const CONFIGURATION = 'export default { webhook: { handlers: { payment_received: async () => {} } } };\n';
const MAIN = join(import.meta.dirname, '../../dist/bin/portico.js');

export async function install(
  bench: Workbench,
  postgres: PostgresServer,
  url: string,
  count: number,
): Promise<Installation> {
  const processes: { server: Server; rest: string }[] = [];
  // One after another: the first one migrates the schema.
  for (let i = 0; i < count; i++) {
    const folder = bench.folder();
    writeFileSync(join(folder, 'portico.config.js'), CONFIGURATION);
    // The second one in case the webhook door gets the first.
    const [first, second] = [await freePort(), await freePort()];
    const rest = (port: number) => (port === first ? second : first);
    const server = await bench.start({
      command: [bench.node, MAIN, 'serve'],
      folder,
      env: (port) => ({
        INTERFACES: 'rest,webhook',
        DATABASE_URL: url,
        PORT: String(port),
        REST_PORT: String(rest(port)),
        SHUTDOWN_PRE_STOP_DELAY: '0',
      }),
    });
    processes.push({ server, rest: `http://127.0.0.1:${rest(Number(new URL(server.origin).port))}` });
  }
  return { bench, postgres, url, processes };
}

export interface Loading {
  readonly door: 'rest' | 'webhook';
  readonly requests: readonly HttpRequest[];
  readonly seconds: number;
  /** Connections of all load generators together. */
  readonly connections: number;
  readonly pause?: number;
}

/** Loads every process with its share of the connections, from a load generator of its own. */
export async function loadAll(on: Installation, loading: Loading): Promise<LoadResult> {
  const { door, requests, seconds, connections, pause } = loading;
  const results = await Promise.all(
    on.processes.map(({ server, rest }) =>
      runLoad('wrk', {
        folder: on.bench.folder(),
        cores: on.bench.cores.load,
        origin: door === 'rest' ? rest : server.origin,
        requests,
        seconds,
        connections: connections / on.processes.length,
        ...(pause === undefined ? {} : { pause }),
      }),
    ),
  );
  for (const { server } of on.processes) server.trimLog();
  const sum = (of: (result: LoadResult) => number) => results.reduce((total, one) => total + of(one), 0);
  const failed = sum((result) => result.failed);
  if (failed > 0) throw new Error(`${failed} requests failed`);
  return {
    perSecond: sum((result) => result.perSecond),
    requests: sum((result) => result.requests),
    failed,
    p50: median(results.map((result) => result.p50)),
    p99: Math.max(...results.map((result) => result.p99)),
    max: Math.max(...results.map((result) => result.max)),
  };
}

/** Runs some work and resolves to its result and what it cost. */
export async function costOf<T>(
  on: Installation,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly cost: Cost }> {
  const before = await readings(on);
  const result = await work();
  const after = await readings(on);
  const of = (key: keyof typeof after) => after[key] - before[key];
  const seconds = of('at') / 1_000;
  const others = [
    of('serverCore') - of('server'),
    of('processCore') - of('process') - of('load') - of('own'),
  ] as const;
  return {
    result,
    cost: {
      seconds,
      serverCpu: of('server'),
      processCpu: of('process'),
      loadCpu: of('load'),
      others: [Math.max(0, others[0] / seconds), Math.max(0, others[1] / seconds)],
      walBytes: of('wal'),
      writes: of('writes'),
    },
  };
}

async function readings({ bench, postgres, url, processes }: Installation) {
  const [row = []] = await postgres.sql(
    `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text, pg_snapshot_xmax(pg_current_snapshot())::text`,
    url,
  );
  return {
    at: performance.now(),
    server: serverCpu(postgres),
    process: processes.reduce((total, { server }) => total + cpuTime(server.pid), 0),
    // The load generators have ended, as the only children that do meanwhile.
    load: statOf(process.pid).ended,
    own: cpuTime(process.pid),
    serverCore: coreTime(bench.cores.all),
    processCore: coreTime(bench.cores.server),
    wal: Number(row[0]),
    writes: Number(row[1]),
  };
}

/** CPU seconds of all processes of the server, those that have ended included. */
function serverCpu({ data }: PostgresServer): number {
  const master = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const times = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOf(Number(name)))
    .filter(({ pid, parent }) => pid === master || parent === master);
  return times.reduce((total, { pid, own, ended }) => total + own + (pid === master ? ended : 0), 0);
}

/** CPU time in seconds, from the fields of /proc/<pid>/stat. */
function statOf(pid: number) {
  try {
    const [, after = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const fields = after.split(' ').map(Number);
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
    const own = cpuTime(pid);
    // The ticks of both are of the same length.
    const tick = user + system === 0 ? 0.01 : own / (user + system);
    return { pid, parent: fields[1], own, ended: (endedUser + endedSystem) * tick };
  } catch {
    // It has ended meanwhile; its time is then that of an ended child.
    return { pid, parent: undefined, own: 0, ended: 0 };
  }
}

/** Connections of the processes to the server, and their memory in megabytes. */
export async function footprint({ postgres, url, processes }: Installation) {
  const [row = []] = await postgres.sql(
    `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
    url,
  );
  return {
    connections: Number(row[0]),
    memory: median(processes.map(({ server }) => memoryUse(server.pid)?.now ?? Number.NaN)),
  };
}
