import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { PostgresServer } from '../../test/support/postgres.ts';
import { Publisher } from '../load/publisher.ts';
import type { Receiver } from '../load/receiver.ts';
import { cpuTime, familyCpuTime } from '../machine/process-use.ts';
import type { Workbench } from '../workbench.ts';
import { databasePid, startDatabaseServer } from './database-server.ts';
import { startPeer } from './peer.ts';
import { startPortico } from './portico.ts';
import type { Server } from './server.ts';

const TOKEN = 'benchmark-token-0123456789';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
/** The type of all events, and the only one that the endpoints get. */
export const TYPE = 'invoice.paid';
/** The headers of a publication. */
export const PUBLISHES = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` } as const;

export const SQLITE = 'Portico on SQLite';
export const POSTGRES = 'Portico on PostgreSQL';
const PEERS = ['pg-boss', 'graphile-worker'] as const;
export type Sender = typeof SQLITE | typeof POSTGRES | (typeof PEERS)[number];
export const SENDERS: readonly Sender[] = [SQLITE, POSTGRES, ...PEERS];

/** Tenants with the same number of endpoints. */
export interface Tenants {
  /** What their names begin with; a number follows. */
  readonly name: string;
  readonly count: number;
  readonly endpoints: number;
}

/** CPU time in seconds. */
export interface Used {
  readonly service: number;
  readonly database: number;
}

/** A service that sends events, with its own database server unless it has none. */
export interface SendingServer {
  readonly label: Sender;
  readonly server: Server;
  readonly publisher: Publisher;
  /** The path of an endpoint of a tenant, and the secret with which it is signed. */
  readonly probe: { readonly path: string; readonly secret: string };
  used(): Used;
  /** The number of jobs in its database. */
  stored(): Promise<number>;
}

/** The tables of jobs. */
const JOBS: Readonly<Record<Sender, string>> = {
  [SQLITE]: 'jobs',
  [POSTGRES]: 'jobs',
  'pg-boss': 'pgboss.job',
  'graphile-worker': 'graphile_worker._private_jobs',
};

/** The body of a publication. */
export function eventBody(tenant: string, n: number): string {
  const customer = { id: `cus_${n % 1_000}`, name: 'Grace Hopper', email: 'grace@example.com' };
  const data = { id: `in_${n}`, amount: 4_200 + n, currency: 'EUR', customer, paid: true };
  return JSON.stringify({ tenant, type: TYPE, data });
}

/** The endpoints of tenants: `/<tenant>/<number>` of the receiver. */
function placesOf(tenants: readonly Tenants[]) {
  return tenants.flatMap(({ name, count, endpoints }) =>
    Array.from({ length: count * endpoints }, (_, i) => {
      const tenant = `${name}${i % count}`;
      return { tenant, path: `/${tenant}/${Math.floor(i / count)}` };
    }),
  );
}

/** Starts all services with the same endpoints; they only publish if `sends` is false. */
export async function startSenders(
  bench: Workbench,
  receiver: Pick<Receiver, 'origin'>,
  tenants: readonly Tenants[],
  { sends = true }: { readonly sends?: boolean } = {},
): Promise<readonly SendingServer[]> {
  const started: SendingServer[] = [];
  for (const label of SENDERS) {
    bench.say(`starting ${label}`);
    const database = label === SQLITE ? undefined : await startDatabaseServer(bench);
    const url = await database?.createDatabase();
    const server = await (label === SQLITE || label === POSTGRES
      ? startPorticoSender(bench, url, sends)
      : startPeer(bench, `sending/${label}`, {
          env: { DATABASE_URL: url ?? '', TOKEN, ...(!sends && { SEND: '0' }) },
        }));
    const secret =
      database === undefined || label === POSTGRES
        ? await addByApi(server, receiver.origin, tenants)
        : await addToTable(database, url ?? '', receiver.origin, tenants);
    const publisher = bench.use(
      new Publisher({ origin: server.origin, headers: PUBLISHES, connections: 64 }),
    );
    started.push({
      label,
      server,
      publisher,
      probe: { path: placesOf(tenants)[0]?.path ?? '', secret },
      stored: async () => {
        const count = `SELECT count(*) AS count FROM ${JOBS[label]}`;
        if (database !== undefined) return Number((await database.sql(count, url))[0]?.[0]);
        using db = new DatabaseSync(join(server.folder, 'portico.db'), { readOnly: true });
        return Number(db.prepare(count).get()?.count);
      },
      used: () => ({
        service: cpuTime(server.pid),
        database: database === undefined ? 0 : familyCpuTime(databasePid(database)),
      }),
    });
  }
  return started;
}

function startPorticoSender(bench: Workbench, url: string | undefined, sends: boolean): Promise<Server> {
  const config = join(bench.folder(), 'sending.json');
  const tokens = { bench: { secret: TOKEN, scopes: ['events:write', 'webhooks:write'] } };
  writeFileSync(config, JSON.stringify({ api: { tokens }, webhook: { sending: { allowPrivate: true } } }));
  return startPortico(bench, 'rest', {
    doors: sends ? ['rest', 'webhook'] : ['rest'],
    env: { CONFIG: config, API_REQUIRED: 'all', ...(url !== undefined && { DATABASE_URL: url }) },
  });
}

/** Resolves to the secret of the first endpoint. */
async function addByApi({ origin }: Server, receiver: string, tenants: readonly Tenants[]): Promise<string> {
  let first = '';
  const waiting = placesOf(tenants).entries();
  const addNext = async () => {
    for (const [i, { tenant, path }] of waiting) {
      const reply = await fetch(`${origin}/webhooks/tenants/${tenant}/endpoints`, {
        method: 'POST',
        headers: PUBLISHES,
        body: JSON.stringify({ url: receiver + path, types: [TYPE] }),
      });
      const answer = await reply.text();
      if (reply.status !== 201) throw new Error(`an endpoint: ${reply.status} ${answer}`);
      if (i === 0) first = JSON.parse(answer).secret;
    }
  };
  await Promise.all(Array.from({ length: 32 }, addNext));
  return first;
}

async function addToTable(
  database: PostgresServer,
  url: string,
  receiver: string,
  tenants: readonly Tenants[],
): Promise<string> {
  const rows = placesOf(tenants).map(
    ({ tenant, path }, i) => `('ep_${i}', '${tenant}', '${receiver}${path}', '${SECRET}', '{${TYPE}}')`,
  );
  await database.sql(`INSERT INTO endpoints (id, tenant, url, secret, types) VALUES ${rows.join()}`, url);
  await database.sql('ANALYZE endpoints', url);
  return SECRET;
}
