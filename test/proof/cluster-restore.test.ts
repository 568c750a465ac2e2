import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort } from '../support/free-port.ts';
import { type PatroniCluster, withoutPatroni } from '../support/patroni.ts';
import { startPortico } from '../support/portico-process.ts';
import { proofSeed, withoutControls } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { atTest, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { hostsRoute, replaced, shownBlock, sql, startCluster } from './cluster/guide.ts';
import { Ledger } from './kill/ledger.ts';
import { Audit } from './replicas/audit.ts';
import { Group } from './replicas/group.ts';
import { type LoadResult, runLoad } from './replicas/load.ts';
import { readContent } from './replicas/store.ts';

const SEED = proofSeed();
const CONNECTIONS = 4;
/** Users that are acknowledged between two steps. */
const LOAD = 50;

const COPY = shownCommand('docs/CLUSTER.md', /^pg_basebackup /);
const VERIFY = shownCommand('docs/CLUSTER.md', /pg_verifybackup /);
const RESTORE = shownCommands('docs/CLUSTER.md', /restored/);
const TARGET = "'2026-05-04 10:12:31+00'";

interface Restored {
  readonly folder: string;
  /** Settings of a server of a test. */
  readonly settings: string;
  readonly time: string | undefined;
}

/** Puts settings of the archive into the configuration of Patroni. */
function withArchive(text: string, archive: string): string {
  const last = 'wal_retrieve_retry_interval: 500ms\n';
  return replaced(text, { [last]: `${last}${archive}` });
}

/** The names of the document that are the same for all. */
const namesOf = ({ shared, bin }: PatroniCluster) => ({
  '/backup/': `${shared}/`,
  '/usr/lib/postgresql/15/bin': bin,
});

/** The ways of the document to archive, to copy and to restore. */
const BACKUP = {
  change: (text: string, shared: string) =>
    withArchive(text, replaced(shownBlock('yaml', 'archive_mode: always'), { '/backup/': `${shared}/` })),
  async copy(cluster: PatroniCluster) {
    const hosts = cluster.machines.map(({ port }) => `127.0.0.1:${port}`).join();
    const names = { 'db1:5432,db2:5432,db3:5432': hosts, ...namesOf(cluster) };
    await cluster.run(atTest(COPY, { names }));
    await cluster.run(atTest(VERIFY, { names }));
  },
  async restore(cluster: PatroniCluster, { folder, settings, time }: Restored) {
    const configuration = replaced(shownBlock('ini', 'restore_command'), {
      "listen_addresses = '*'": settings,
      '/backup/': `${cluster.shared}/`,
      [`recovery_target_time = ${TARGET}`]: time === undefined ? '' : `recovery_target_time = '${time}'`,
    });
    await cluster.run(`cat > restored.conf <<'END'\n${configuration}\nEND`);
    const names = { ...namesOf(cluster), '/var/lib/postgresql/15/restored': folder };
    for (const each of RESTORE) await cluster.run(atTest(each, { names }));
  },
};

/** What a moment of the load had, so that a restored server can be compared with it. */
interface Moment {
  /** As the servers write it. */
  readonly time: string;
  readonly users: ReadonlySet<number>;
  readonly deliveries: ReadonlySet<string>;
  /** When everything sent later came after it, in milliseconds, and how many deliveries had been sent. */
  readonly after: number;
  readonly sent: number;
}

async function momentOf(leader: string, { created }: LoadResult, ledger: Ledger): Promise<Moment> {
  const users = new Set(created.map(({ id }) => id));
  const known = [...ledger.deliveries].filter(([, { known: state }]) => state === 'acknowledged');
  const [row] = await sql(leader, 'SELECT clock_timestamp()::text');
  return {
    time: String(row?.[0]),
    users,
    deliveries: new Set(known.map(([token]) => token)),
    after: performance.now(),
    sent: ledger.deliveries.size,
  };
}

/** Compares a restored server with the moment. */
async function compare(url: string, moment: Moment, { created }: LoadResult, ledger: Ledger): Promise<void> {
  const { users, deliveries } = await readContent((text) => sql(url, text));
  for (const id of moment.users) assert.ok(users.has(id), `user ${id} is lost`);
  for (const token of moment.deliveries) assert.ok(deliveries.has(token), `delivery ${token} is lost`);
  const later = created.filter(({ sentAt }) => sentAt > moment.after);
  assert.ok(later.length > 0);
  for (const { id } of later) assert.ok(!users.has(id), `user ${id} came later`);
  for (const token of [...ledger.deliveries.keys()].slice(moment.sent))
    assert.ok(!deliveries.has(token), `delivery ${token} came later`);
}

/** Restores the copy to a server, to the end without a time; resolves to its URL for Portico. */
async function restored(cluster: PatroniCluster, name: string, time?: string): Promise<string> {
  const port = await freePort();
  const settings = `listen_addresses = '127.0.0.1'\nport = ${port}\nunix_socket_directories = ''`;
  await BACKUP.restore(cluster, { folder: join(cluster.shared, name), settings, time });
  const url = `postgres://portico:secret@127.0.0.1:${port}/portico`;
  await waitFor('the end of the recovery', () =>
    sql(url, 'SELECT 1').then(
      () => true,
      () => false,
    ),
  );
  return url;
}

/** Resolves once all that was committed is archived. */
async function untilArchived(leader: string): Promise<void> {
  const [row] = await sql(leader, 'SELECT pg_walfile_name(pg_switch_wal())');
  await waitFor('the archive', async () => {
    const [found] = await sql(leader, `SELECT last_archived_wal >= '${row?.[0]}' FROM pg_stat_archiver`);
    return found?.[0] === true;
  });
}

/** Starts Portico on a restored server: it has the users, and takes another. */
async function serve(url: string, users: number): Promise<void> {
  await using folder = await temporaryFolder();
  await using portico = startPortico({
    cwd: folder.path,
    env: { DATABASE_URL: url, INTERFACES: 'rest', CONFIG: join(import.meta.dirname, 'kill/handlers.ts') },
  });
  await portico.ready();
  const { rest } = portico.urls;
  const listed = (await (await fetch(`${rest}/users`)).json()) as { readonly data: readonly unknown[] };
  assert.equal(listed.data.length, users);
  const reply = await fetch(`${rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
  assert.equal(reply.status, 200);
}

async function prove(t: TestContext): Promise<void> {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  await using cleanup = new AsyncDisposableStack();
  const cluster = cleanup.use(await startCluster({ change: BACKUP.change }));
  const folder = cleanup.use(await temporaryFolder()).path;
  const group = cleanup.use(await Group.start({ folder, databaseUrl: hostsRoute(cluster).url, count: 1 }));
  const ledger = new Ledger();
  const result: LoadResult = { created: [], ordered: [], refused: new Set(), unknown: 0, reads: 0 };
  const stop = new AbortController();
  const random = seededRandom(SEED);
  const next = () => group.next();
  const loading = runLoad({ next, ledger, random, connections: CONNECTIONS, signal: stop.signal }, result);
  const more = async () => {
    const before = result.created.length;
    await waitFor('more load', () => stop.signal.aborted || result.created.length > before + LOAD);
  };
  const leader = async () => cluster.url('portico', await cluster.whole());

  const work = (async () => {
    await more();
    await BACKUP.copy(cluster);
    await more();
    const old = await cluster.whole();
    cluster.kill(old);
    await more();
    await cluster.start(old);
    const moment = await momentOf(await leader(), result, ledger);
    await more();
    return moment;
  })();
  try {
    await Promise.race([work, loading]);
  } finally {
    stop.abort();
    await Promise.allSettled([work, loading]);
  }
  const [moment] = await Promise.all([work, loading]);
  const last = await leader();
  const audit = (url: string) =>
    new Audit({ folder, ledger, sql: (text) => sql(url, text) }).all(group, result);
  await audit(last);
  await untilArchived(last);

  const atMoment = await restored(cluster, 'restored-moment', moment.time);
  await compare(atMoment, moment, result, ledger);
  const atEnd = await restored(cluster, 'restored-end');
  await audit(atEnd);
  const { users } = await readContent((text) => sql(atEnd, text));
  await serve(atEnd, users.size);
  t.diagnostic(
    `${users.size} users and ${ledger.deliveries.size} deliveries were sent; ${moment.users.size} users and ` +
      `${moment.deliveries.size} deliveries were acknowledged before ${moment.time}`,
  );
}

test(
  'a copy of a replica and the archive of the guide restore everything, at a time and at the end',
  {
    skip: withoutPatroni() || withoutControls,
    timeout: 900_000,
  },
  prove,
);
