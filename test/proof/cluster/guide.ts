import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { blocks } from '../../documents/documents.ts';
import { freePort } from '../../support/free-port.ts';
import { type Machine, type PatroniCluster, startPatroni } from '../../support/patroni.ts';
import { settingsOf, shownCommand } from '../../support/shown-commands.ts';
import { waitFor } from '../../support/wait-for.ts';

const SERVE = shownCommand('docs/CLUSTER.md', /^DATABASE_URL=\S*@db1:\S* npm start$/);
const SERVE_READING = shownCommand('docs/CLUSTER.md', /DATABASE_READ_URL=.*npm start$/);
const SERVE_BALANCED = shownCommand('docs/CLUSTER.md', /@db:5000.*npm start$/);
const SERVE_POOLED = shownCommand('docs/CLUSTER.md', /@db:6432.*npm start$/);
/** Settings of the document that take too long for a test, and what a server of a test needs. */
const TEST_SETTINGS = {
  'ttl: 20': 'ttl: 6',
  'loop_wait: 5': 'loop_wait: 1',
  'retry_timeout: 5': 'retry_timeout: 2',
  '  data_dir:':
    '  parameters: { unix_socket_directories: "", shared_buffers: 32MB, log_connections: "on" }\n  data_dir:',
};
/** Without synchronous mode, and a replica is promoted however much it lacks. */
const ASYNCHRONOUS = {
  'synchronous_mode: true': 'synchronous_mode: false\n    maximum_lag_on_failover: 1000000000',
};
/** The network of the document. */
const NETWORK = { '10.0.0.0/24': '127.0.0.1/32' };

/** The block of the document that has a text. */
export function shownBlock(language: string, text: string): string {
  const found = blocks(language).find(
    (block) => block.path === 'docs/CLUSTER.md' && block.text.includes(text),
  );
  assert.ok(found !== undefined, `docs/CLUSTER.md has no ${language} with ${text}`);
  return found.text;
}

/** The texts of the document, with those of the test. */
export function replaced(text: string, names: Readonly<Record<string, string>>): string {
  return Object.entries(names).reduce((left, [shownName, actual]) => {
    assert.ok(left.includes(shownName), `docs/CLUSTER.md has no ${shownName}`);
    return left.replaceAll(shownName, actual);
  }, text);
}

export interface ClusterOptions {
  /** Whether commits wait for a replica. Default: true. */
  readonly synchronous?: boolean;
  /** Changes the configuration of Patroni, given the folder that all machines share. */
  readonly change?: (text: string, shared: string) => string;
}

/** The cluster of the document, with the user and the database that its URL names. */
export async function startCluster({
  synchronous = true,
  change = (text) => text,
}: ClusterOptions = {}): Promise<PatroniCluster> {
  const patroni = shownBlock('yaml', 'scope: portico');
  const cluster = await startPatroni({
    configuration: (machine, machines, { bin, shared }) =>
      change(
        replaced(patroni, {
          ...(synchronous ? {} : ASYNCHRONOUS),
          'db1:2379,db2:2379,db3:2379': machines.map(({ etcd }) => etcd.client).join(),
          '0.0.0.0:8008': `127.0.0.1:${machine.api}`,
          'db1:8008': `127.0.0.1:${machine.api}`,
          '0.0.0.0:5432': `127.0.0.1:${machine.port}`,
          'db1:5432': `127.0.0.1:${machine.port}`,
          'name: db1': `name: ${machine.name}`,
          '/var/lib/postgresql/15/portico': join(machine.folder, 'data'),
          '/usr/lib/postgresql/15/bin': bin,
          '/var/lib/postgresql/': `${machine.folder}/`,
          ...NETWORK,
          ...TEST_SETTINGS,
        }),
        shared,
      ),
    etcdSettings: ({ name, etcd }, machines) => etcdSettings(name, etcd, machines),
    synchronous,
  });
  const url = cluster.url('postgres', await cluster.whole());
  await sql(url, `CREATE ROLE portico LOGIN PASSWORD 'secret'`);
  await sql(url, shownBlock('sql', 'pg_read_all_stats'));
  await sql(url, 'CREATE DATABASE portico OWNER portico');
  await sql(url, 'CREATE TABLE probe (n int)');
  return cluster;
}

function etcdSettings(
  name: string,
  { client, peer }: Machine['etcd'],
  machines: readonly Machine[],
): NodeJS.ProcessEnv {
  const members = machines.map((each) => `${each.name}=http://${each.etcd.peer}`).join();
  const lines = replaced(shownBlock('ini', 'ETCD_'), {
    'db1=http://db1:2380,db2=http://db2:2380,db3=http://db3:2380': members,
    'NAME=db1': `NAME=${name}`,
    '0.0.0.0:2379': client,
    'db1:2379': client,
    '0.0.0.0:2380': peer,
    'http://db1:2380': `http://${peer}`,
  }).split('\n');
  const settings = lines.filter((line) => line.startsWith('ETCD_'));
  return Object.fromEntries(settings.map((line) => line.split(/=(.*)/s).slice(0, 2)));
}

/** A way to the leader that the document shows. */
export interface Route {
  readonly by: 'hosts' | 'HAProxy' | 'PgBouncer';
  readonly url: string;
}

/** The ways to the leader by what is installed; starts what they need. */
export async function startRoutes(cluster: PatroniCluster): Promise<readonly Route[]> {
  const routes: Route[] = [hostsRoute(cluster)];
  if (!isInstalled('haproxy', '-v')) return routes;
  const port = await freePort();
  const servers = cluster.machines.map((machine) => [
    `${machine.name}:5432 check port 8008`,
    `127.0.0.1:${machine.port} check port ${machine.api}`,
  ]);
  const balancer = replaced(shownBlock('haproxy', 'listen portico'), {
    ':5000': `127.0.0.1:${port}`,
    ...Object.fromEntries(servers),
  });
  await cluster.startBeside('haproxy', ['-f', 'haproxy.cfg'], { 'haproxy.cfg': balancer });
  const { DATABASE_URL: url = '' } = settingsOf(SERVE_BALANCED, { 'db:5000': `127.0.0.1:${port}` });
  // Until its first checks it takes every member for the leader, in turn.
  await findsLeader('HAProxy', url, 2 * servers.length);
  routes.push({ by: 'HAProxy', url });
  if (isInstalled('pgbouncer', '--version')) {
    const pooled = await startPooler(cluster, port);
    await findsLeader('PgBouncer', pooled, 1);
    routes.push({ by: 'PgBouncer', url: pooled });
  }
  return routes;
}

/** The way without any program between. */
export function hostsRoute({ machines }: PatroniCluster): Route {
  const hosts = machines.map(({ port }) => `127.0.0.1:${port}`).join();
  const { DATABASE_URL: url = '' } = settingsOf(SERVE, { 'db1:5432,db2:5432,db3:5432': hosts });
  return { by: 'hosts', url };
}

/** The settings of a process that reads from the replicas. */
export function readingSettings({ machines }: PatroniCluster): Readonly<Record<string, string>> {
  const hosts = machines.map(({ port }) => `127.0.0.1:${port}`).join();
  return settingsOf(SERVE_READING, { 'db1:5432,db2:5432,db3:5432': hosts });
}

/** The PgBouncer of the document; resolves to the URL of Portico. */
async function startPooler(cluster: PatroniCluster, balancer: number): Promise<string> {
  const port = await freePort();
  const pooler = replaced(shownBlock('ini', 'pool_mode'), {
    'host=db port=5000': `host=127.0.0.1 port=${balancer}`,
    'listen_addr = 0.0.0.0': 'listen_addr = 127.0.0.1\nunix_socket_dir =',
    '6432': String(port),
    '/etc/pgbouncer/': '',
  });
  const users = shownBlock('text', '"portico"');
  const files = { 'pgbouncer.ini': pooler, 'userlist.txt': users };
  await cluster.startBeside('pgbouncer', ['pgbouncer.ini'], files);
  const { DATABASE_URL: url = '' } = settingsOf(SERVE_POOLED, { 'db:6432': `127.0.0.1:${port}` });
  return url;
}

async function findsLeader(what: string, url: string, times: number): Promise<void> {
  await waitFor(`${what} to find the leader`, async () => {
    for (let i = 0; i < times; i++) {
      const rows = await sql(url, 'SELECT 1 WHERE NOT pg_is_in_recovery()').catch(() => []);
      if (rows.length === 0) return false;
    }
    return true;
  });
}

function isInstalled(program: string, word: string): boolean {
  try {
    execFileSync(program, [word], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Runs a statement on a connection of its own. */
export async function sql(url: string, text: string): Promise<readonly (readonly unknown[])[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<unknown[]>({ text, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}
