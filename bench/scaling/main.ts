import { randomUUIDv7 } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openDatabase } from '../../src/sql/open.ts';
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts';
import type { HttpRequest, LoadResult } from '../load/load.ts';
import { moveTo } from '../machine/cores.ts';
import { describeMachine } from '../machine/machine.ts';
import { hasTool } from '../machine/tools.ts';
import { createProgress } from '../progress.ts';
import { tableLines } from '../report/markdown.ts';
import { userRequests } from '../servers/rest.ts';
import { FULL, Workbench } from '../workbench.ts';
import {
  type Cost,
  costOf,
  footprint,
  type Installation,
  install,
  type Loading,
  loadAll,
} from './installation.ts';
import { type Figures, scalingTable } from './table.ts';

const USAGE = `npm run scaling -- [--processes <n>,...] [--rounds <n>] [--seconds <n>] [--server <core>] [--clients <core>] [--out <file>]

  --processes  the numbers of processes that share one PostgreSQL; default 1,2,4
  --rounds     of each; default 3
  --seconds    the length of a measurement, which half as long a warm-up precedes; default 8
  --server     the core of PostgreSQL; default 0
  --clients    the core of the processes and the load generators; default 1
  --out        where the figures are written; default build/scaling.json

It needs wrk, taskset and the binaries of PostgreSQL, and two cores.
`;

const USERS = 100_000;
const BACKLOG = 250_000;
const CONNECTIONS = 64;
/** Pause of a connection before each request of the paced load, in milliseconds. */
const PAUSE = 40;

const post = (path: string, bodies: readonly unknown[]): readonly HttpRequest[] =>
  bodies.map((body) => ({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }));
const creates = post(
  '/users',
  Array.from({ length: 100 }, (_, i) => ({ name: `Grace Hopper ${i}`, email: `grace${i}@example.com` })),
);
const deliveries = post('/webhook', [
  { event: 'invoice.paid', data: { id: 'in_1', amount: 4200, customer: 'cus_1' } },
]);
const HANDLED = Buffer.from(
  JSON.stringify({ event: 'payment_received', data: { id: 'in_1', amount: 4200, customer: 'cus_1' } }),
);

/** What is sent, in this order. */
const LOADS: Readonly<Record<string, Omit<Loading, 'seconds' | 'connections'>>> = {
  'reads of a user': { door: 'rest', requests: userRequests(1_000) },
  'reads of a page of 20 users': { door: 'rest', requests: [{ method: 'GET', path: '/users?limit=20' }] },
  creates: { door: 'rest', requests: creates },
  acknowledgements: { door: 'webhook', requests: deliveries },
  'creates, paced': { door: 'rest', requests: creates, pause: PAUSE },
  'acknowledgements, paced': { door: 'webhook', requests: deliveries, pause: PAUSE },
};

interface Options {
  readonly seconds: number;
  readonly say: (text: string) => void;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      processes: { type: 'string', default: '1,2,4' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '8' },
      server: { type: 'string', default: '0' },
      clients: { type: 'string', default: '1' },
      out: { type: 'string', default: 'build/scaling.json' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (!hasTool('wrk', '-v') || !hasTool('taskset', '--version')) {
    process.stderr.write(USAGE);
    return 2;
  }
  const counts = values.processes.split(',').map(Number);
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  moveTo(values.clients, process.pid);
  const progress = createProgress('scaling');
  const cores = { server: values.clients, load: values.clients, all: values.server };
  const found: Figures[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const count of round % 2 === 0 ? counts : counts.toReversed()) {
      const say = (what: string) =>
        progress.say(`round ${round + 1} of ${rounds}, ${count} processes: ${what}`);
      await using bench = new Workbench({ pace: FULL, cores, tool: 'wrk', node: process.execPath, say });
      found.push(...(await measure(bench, count, { seconds, say })));
      const out = resolve(values.out);
      mkdirSync(dirname(out), { recursive: true });
      writeFileSync(
        out,
        JSON.stringify({ machine: describeMachine(), node: process.version, found }, null, 1),
      );
    }
  }
  progress.end();
  process.stdout.write(`${tableLines(scalingTable(found)).join('\n')}\n`);
  return 0;
}

/** Measures one number of processes on a server of its own. */
async function measure(bench: Workbench, count: number, options: Options): Promise<readonly Figures[]> {
  const settings = { shared_buffers: '1GB', max_wal_size: '8GB', checkpoint_timeout: '30min' };
  // All processes of the server inherit the core.
  moveTo(bench.cores.all, process.pid);
  const postgres = bench.use(await startPostgres({ sync: true, settings }));
  moveTo(bench.cores.server, process.pid);
  const figures = [...(await measureDoors(bench, postgres, count, options))];
  figures.push(await measureHandling(bench, postgres, count, options));
  return figures;
}

async function measureDoors(
  bench: Workbench,
  postgres: PostgresServer,
  count: number,
  { seconds, say }: Options,
): Promise<readonly Figures[]> {
  const on = await install(bench, postgres, await postgres.createDatabase(), count);
  await postgres.sql(
    `INSERT INTO users (name, email) SELECT 'User ' || i, 'user' || i || '@example.com' FROM generate_series(1, ${USERS}) i`,
    on.url,
  );
  await postgres.sql('VACUUM ANALYZE', on.url);
  await delay(3_000);
  const figures: Figures[] = [];
  for (const [what, load] of Object.entries(LOADS)) {
    say(what);
    const loading = { ...load, connections: CONNECTIONS };
    await loadAll(on, { ...loading, seconds: Math.ceil(seconds / 2) });
    const { result, cost } = await costOf(on, () => loadAll(on, { ...loading, seconds }));
    figures.push(figuresOf(what, count, result, cost));
  }
  // The connections are open by now.
  say('idle');
  await delay(seconds * 500);
  const { cost } = await costOf(on, () => delay(seconds * 1_000));
  const sizes = await sizesOf(on);
  const idle = { ...figuresOf('idle', count, NOTHING, cost), footprint: await footprint(on), sizes };
  for (const { server } of on.processes) await server.stop();
  return [...figures, idle];
}

const NOTHING: LoadResult = { perSecond: 0, requests: 0, failed: 0, p50: 0, p99: 0, max: 0 };

/** Stores a backlog, starts the processes and measures while they handle it. */
async function measureHandling(
  bench: Workbench,
  postgres: PostgresServer,
  count: number,
  { seconds, say }: Options,
): Promise<Figures> {
  say('a backlog is stored');
  const url = await postgres.createDatabase();
  await storeBacklog(url);
  await postgres.sql('VACUUM ANALYZE', url);
  const on = await install(bench, postgres, url, count);
  const open = async () =>
    Number((await postgres.sql(`SELECT count(*) FROM jobs WHERE status = 'open'`, url))[0]?.[0]);
  say('handling');
  await delay(seconds * 500);
  const before = await open();
  const { cost } = await costOf(on, () => delay(seconds * 1_000));
  const left = await open();
  if (left === 0) throw new Error('the backlog was handled before the end: make BACKLOG larger');
  const handled = before - left;
  const sizes = await sizesOf(on);
  for (const { server } of on.processes) await server.stop();
  const load = { ...NOTHING, requests: handled, perSecond: handled / cost.seconds };
  return { ...figuresOf('handling', count, load, cost), sizes };
}

async function storeBacklog(url: string): Promise<void> {
  await using database = await openDatabase(url);
  const { inbox } = database;
  const append = () =>
    inbox.append({
      id: randomUUIDv7(),
      source: '',
      event: 'payment_received',
      dataPointer: '/data',
      contentType: 'application/json',
      body: HANDLED,
      receivedAt: Date.now(),
      dedupKey: null,
      jobs: [{ target: 'handler:payment_received', orderKey: null }],
    });
  for (let i = 0; i < BACKLOG; i += 1_000) await Promise.all(Array.from({ length: 1_000 }, append));
}

function figuresOf(what: string, processes: number, load: LoadResult, cost: Cost): Figures {
  return { what, processes, load, cost };
}

/** Rows and bytes, indexes included, of the tables that grow. */
async function sizesOf({ postgres, url }: Installation): Promise<NonNullable<Figures['sizes']>> {
  return Promise.all(
    ['users', 'deliveries', 'jobs'].map(async (table) => {
      const [row = []] = await postgres.sql(
        `SELECT count(*), pg_total_relation_size('${table}') FROM ${table}`,
        url,
      );
      return { table, rows: Number(row[0]), bytes: Number(row[1]) };
    }),
  );
}

// Exiting kills all processes that were started, whatever the reason.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
process.exitCode = await main();
