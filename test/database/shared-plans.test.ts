import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { migrate } from '../../src/sql/sqlite/migrate.ts';
import { indexUsers } from '../../src/sql/sqlite/user-indexes.ts';
import { SHARED_QUERIES } from '../../src/sql/stores/queries.ts';
import type { Query } from '../../src/sql/stores/sql.ts';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';

const SQL = join(import.meta.dirname, '../../src/sql');

/** Tables that grow with the load. The others have a bounded number of rows. */
const GROWING = new Set([
  'users',
  'deliveries',
  'jobs',
  'attempts',
  'remembered_keys',
  'enqueued',
  'idempotency_keys',
  'user_events',
  'audit_events',
  'webhook_endpoints',
  'webhook_tenants',
]);

/**
 * The indexes by which a statement reads tables that grow: those that both engines use, and those of one. A
 * star marks one that is read as a whole or up to a limit. `jobs.key` is the primary key.
 */
interface Plan {
  readonly both?: readonly string[];
  readonly sqlite?: readonly string[];
  readonly postgres?: readonly string[];
  /** Instead of `postgres`, if the tables are empty, where the planner prefers to sort a few rows. */
  readonly postgresEmpty?: readonly string[];
}

/** Every shared statement must be listed. */
const PLANS: Readonly<Record<string, Plan>> = {
  'tokens.list': {},
  'tokens.live': {},
  'tokens.create': {},
  'tokens.revoke': {},
  'tokens.noteUses': {},
  'audit.add': {},
  // Newest first, up to the limit; retention bounds the rest.
  'audit.find': {
    sqlite: ['audit_events.key*'],
    postgres: ['audit_events.key*'],
    postgresEmpty: ['audit_events_age'],
  },
  'audit.prune': { both: ['audit_events.key', 'audit_events_age', 'audit_events_kind'] },
  'deliveries.attempts': { both: ['attempts_job', 'jobs_delivery'] },
  'deliveries.bySender': { both: ['deliveries_dedup'], postgres: ['deliveries_dedup*'] },
  // A window of deliveries, whatever their status.
  'deliveries.counts': { both: ['deliveries.key', 'jobs_delivery'] },
  // The dead jobs up to a limit, and the jobs of their deliveries.
  'deliveries.dead': {
    both: ['jobs_dead_target', 'jobs_delivery'],
    postgres: ['jobs_dead*'],
    postgresEmpty: [],
  },
  // The ends of both indexes for each target, or all dead jobs where they are few.
  'deliveries.failing': {
    both: ['jobs_dead_target', 'jobs_due'],
    postgres: ['jobs_dead_target*', 'jobs_due*'],
  },
  'deliveries.discard': { both: ['jobs_delivery'] },
  'deliveries.exact': { sqlite: ['deliveries.key'], postgres: ['deliveries_id_key'] },
  'deliveries.find': {
    both: ['jobs_delivery'],
    sqlite: ['deliveries.key'],
    postgres: ['deliveries_id_key'],
  },
  'deliveries.jobs': { both: ['jobs_delivery'] },
  'deliveries.keepSuccesses': { both: ['attempts_job', 'jobs_delivery'] },
  'deliveries.lock': { both: ['deliveries.key'] },
  'deliveries.lockJobs': { both: ['jobs_delivery'] },
  'deliveries.matchesBack': { both: ['deliveries.key', 'jobs_delivery'] },
  'deliveries.matchesForward': { both: ['deliveries.key', 'jobs_delivery'] },
  'deliveries.range': { sqlite: ['deliveries.key'], postgres: ['deliveries_id_key'] },
  'deliveries.replaceTarget': { both: ['jobs_delivery'] },
  'deliveries.replay': { both: ['jobs_delivery'] },
  'deliveries.replayUnhandled': { both: ['deliveries.key', 'jobs_delivery'], sqlite: ['jobs_order'] },
  'deliveries.seqOf': { sqlite: ['deliveries.key'], postgres: ['deliveries_id_key'] },
  'deliveries.windowBack': { both: ['deliveries.key'] },
  'deliveries.windowForward': { both: ['deliveries.key'] },
  // Those of open and of dead jobs hold nothing else.
  'inbox.backlog': {
    both: ['deliveries.key', 'jobs_dead_target', 'jobs_due', 'jobs_order'],
    postgres: ['jobs_dead*', 'jobs_due*'],
    postgresEmpty: ['jobs_due*', 'jobs_order*'],
  },
  'inbox.deadLetters': { both: ['jobs_dead_target'], postgres: ['jobs_dead_target*'] },
  'inbox.due': { both: ['jobs_due'] },
  'inbox.dueQuarantined': { both: ['jobs_quarantined'] },
  'inbox.expireOrphans': {
    both: ['jobs.key', 'jobs_due'],
    sqlite: ['jobs_order'],
    postgres: ['jobs_order'],
    postgresEmpty: ['jobs_order*'],
  },
  'inbox.forgetKeys': {
    both: ['remembered_keys.key', 'remembered_keys_age'],
    postgres: ['remembered_keys.key*'],
  },
  'inbox.heartbeat': { sqlite: ['jobs_due'], postgres: ['jobs_due*'] },
  'inbox.held': { both: ['jobs.key'] },
  'inbox.idOf': {
    both: ['deliveries_dedup'],
    sqlite: ['remembered_keys.unique'],
    postgres: ['remembered_keys_source_dedup_key_key'],
  },
  'inbox.renew': { both: ['jobs.key'] },
  'producers.beginRelay': {},
  'producers.checkpoints': {},
  'producers.endRelay': {},
  'producers.moveCheckpoint': {},
  'producers.moveRelay': {},
  // The first hundred.
  'producers.oldestEnqueued': { both: ['enqueued.key*'] },
  'producers.takeEnqueued': { both: ['enqueued.key'] },
  'inbox.waiting': { both: ['jobs_due'] },
  'inbox.waitingQuarantined': { both: ['jobs_quarantined'] },
  'sending.bumpTenant': { sqlite: ['webhook_tenants.unique'], postgres: ['webhook_tenants_name_key'] },
  'sending.changeEndpoint': { sqlite: ['webhook_endpoints.unique'], postgres: ['webhook_endpoints_id_key'] },
  'sending.createEndpoint': { both: ['webhook_endpoints_tenant'] },
  'sending.disableEndpoint': { sqlite: ['webhook_endpoints.unique'], postgres: ['webhook_endpoints_id_key'] },
  'sending.endpoint': { sqlite: ['webhook_endpoints.unique'], postgres: ['webhook_endpoints_id_key'] },
  'sending.endpoints': { both: ['webhook_endpoints_tenant'] },
  'sending.inState': { both: ['webhook_endpoints_state'] },
  'sending.inStateOf': { both: ['webhook_endpoints_tenant'] },
  'sending.stateCounts': { both: ['webhook_endpoints_state'] },
  'sending.stateCountsOf': { both: ['webhook_endpoints_tenant'] },
  'sending.endpointsOf': { sqlite: ['webhook_endpoints.unique'], postgres: ['webhook_endpoints_id_key'] },
  'sending.eventType': {},
  'sending.eventTypes': {},
  'sending.noteFailing': {
    both: ['webhook_endpoints.key'],
    sqlite: ['webhook_endpoints.unique'],
    postgres: ['webhook_endpoints_id_key'],
  },
  'sending.putEventType': {},
  'sending.putTenant': {},
  'sending.removeEndpoint': { sqlite: ['webhook_endpoints.unique'], postgres: ['webhook_endpoints_id_key'] },
  'sending.removeEndpoints': { both: ['webhook_endpoints_tenant'] },
  'sending.removeEventType': {},
  'sending.removeTenant': { sqlite: ['webhook_tenants.unique'], postgres: ['webhook_tenants_name_key'] },
  'sending.subscribers': {
    both: ['webhook_endpoints_tenant'],
    sqlite: ['webhook_tenants.unique'],
    postgres: ['webhook_tenants_name_key'],
  },
  'sending.tenant': { sqlite: ['webhook_tenants.unique'], postgres: ['webhook_tenants_name_key'] },
  'sending.tenants': { both: ['webhook_tenants.key'] },
  'sending.touchTenant': {},
  'sending.versions': {
    both: ['webhook_endpoints_tenant'],
    sqlite: ['webhook_tenants.unique'],
    postgres: ['webhook_tenants_name_key'],
  },
  'sending.versionsOf': {
    both: ['webhook_endpoints_tenant'],
    sqlite: ['webhook_tenants.unique'],
    postgres: ['webhook_tenants_name_key'],
  },
  'sent.add': { both: ['deliveries.key', 'jobs_delivery'], sqlite: ['jobs_order'] },
  'sent.attempts': { both: ['attempts_job', 'jobs_delivery'] },
  'sent.event': { both: ['deliveries.key'] },
  'sent.eventWindow': { both: ['deliveries_tenant'] },
  'sent.events': { both: ['deliveries_tenant'] },
  'sent.lastAttempts': { both: ['attempts_job', 'deliveries.key', 'jobs.key', 'jobs_endpoint'] },
  'sent.recent': { both: ['attempts_job', 'jobs_endpoint'] },
  'sent.keepSuccess': { both: ['attempts_job', 'jobs_delivery'] },
  'sent.lockEvent': { both: ['deliveries.key'] },
  'sent.reopen': { both: ['jobs_delivery'] },
  'sent.replayPage': { both: ['deliveries_tenant'] },
  'sent.sent': { both: ['deliveries.key', 'jobs_endpoint'] },
  'sent.sentTo': { both: ['deliveries.key', 'jobs_delivery'] },
  'sent.sentWindow': { both: ['jobs_endpoint'] },
  'sent.stats': { both: ['jobs_endpoint'] },
  'users.beginImport': {},
  'users.change': { both: ['users.key'] },
  'users.claimKey': {},
  'users.createForKey': { both: ['idempotency_keys.key'] },
  'users.cursorKey': {},
  'users.exists': { both: ['users.key'] },
  'users.expireImports': {},
  'users.expireKeys': { both: ['idempotency_keys.key', 'idempotency_keys_expiry'] },
  'users.firstTaken': {
    sqlite: ['users_email_unique'],
    postgres: ['users_email_unique'],
    postgresEmpty: ['users_email_unique*'],
  },
  // The last row.
  'users.lastId': { both: ['users.key*'] },
  'users.moveImport': {},
  'users.noteForKey': { both: ['idempotency_keys.key'] },
  'users.removeIf': { both: ['users.key'] },
  // The last row.
  'users.state': { sqlite: ['users.key*'] },
};

const INDEXES = { search: 'none', uniqueEmail: true } as const;

/** Fills a table with so many rows, so that the planner of PostgreSQL has another idea of it. */
const MANY = 20_000;
const FILL = `
  INSERT INTO users (name, email) SELECT 'n' || n, 'e' || n FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO deliveries (id, source, event, data_pointer, body, received_at, dedup_key)
    SELECT 'd' || n, '', 'e', '', '', n, 'k' || n FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO jobs (delivery, target, status, due_at, order_key, owner, finished_at)
    SELECT seq, 't' || seq % 5, CASE WHEN seq % 4 = 0 THEN 'open' WHEN seq % 4 = 1 THEN 'dead' ELSE 'done' END, seq,
      CASE WHEN seq % 8 = 0 THEN 'k' || seq END, CASE WHEN seq % 16 = 4 THEN 'me' END, CASE WHEN seq % 4 > 0 THEN seq END
    FROM deliveries;
  INSERT INTO attempts (job, attempt, outcome, started_at, process) SELECT seq, 1, 'retry', 0, 'p' FROM jobs;
  INSERT INTO remembered_keys (source, dedup_key, id, received_at)
    SELECT '', 'r' || n, 'd', n FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO enqueued (id, source, event, body, received_at)
    SELECT 'q' || n, '', 'e', '', n FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO idempotency_keys (key, fingerprint, user_id, version, expires_at)
    SELECT 'i' || n, '', n, n, n FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO audit_events (at, action, principal, type, data)
    SELECT n, n % 2, 'p', 't', '{}' FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO webhook_tenants (name, version, created_at) SELECT 't' || n, n, n FROM generate_series(1, ${MANY} / 10) AS n;
  INSERT INTO webhook_endpoints (id, tenant, settings, secrets, created_at, updated_at)
    SELECT 'ep' || n, 't' || n / 10, '{}', '[]', n, n FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO deliveries (id, source, event, data_pointer, body, received_at)
    SELECT 'te' || n, 'tenant:t' || n % 100, 'e', '/data', '', n FROM generate_series(1, ${MANY}) AS n;
  INSERT INTO jobs (delivery, target, status, due_at)
    SELECT seq, 'endpoint:t' || seq % 100 || '/ep' || seq % 1000, CASE WHEN seq % 2 = 0 THEN 'open' ELSE 'done' END, seq
    FROM deliveries WHERE source >= 'tenant:';
  INSERT INTO targets (name, seen_at) SELECT 't' || n, n FROM generate_series(1, 5) AS n;
  ANALYZE`;

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly Plans?: readonly PlanNode[];
}

/** The indexes that a plan of PostgreSQL reads tables that grow by. */
function indexesOf(node: PlanNode, table = ''): readonly string[] {
  const { 'Relation Name': relation = table, 'Index Name': index, 'Node Type': type, Plans = [] } = node;
  const inner = Plans.flatMap((each) => indexesOf(each, type === 'Bitmap Heap Scan' ? relation : ''));
  if (!GROWING.has(relation) || !/Scan/.test(type) || type === 'Bitmap Heap Scan') return inner;
  if (index === undefined) return [...inner, `${relation}*`];
  const name = index.replace(/_pkey$/, '.key');
  return [...inner, node['Index Cond'] === undefined ? `${name}*` : name];
}

/** The indexes that SQLite reads tables that grow by. It names tables by their aliases. */
function sqliteIndexes(db: DatabaseSync, text: string): readonly string[] {
  const aliases = new Map([...GROWING].map((table) => [table, table]));
  for (const [, table = '', alias = ''] of text.matchAll(/\b(\w+) AS (\w+)/g)) {
    if (GROWING.has(table)) aliases.set(alias, table);
  }
  const lines = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all();
  return lines.flatMap(({ detail }) => {
    const [, how, name = '', index] =
      /^(SEARCH|SCAN) (\w+)(?: EXISTS)?(?: USING (?:COVERING )?(?:INDEX (\w+)|INTEGER PRIMARY KEY))?/.exec(
        String(detail),
      ) ?? [];
    const table = aliases.get(name);
    if (table === undefined) return [];
    assert.doesNotMatch(String(detail), / AUTOMATIC /);
    const own = index?.startsWith('sqlite_autoindex_') ? `${table}.unique` : (index ?? `${table}.key`);
    return how === 'SCAN' ? [`${own}*`] : [own];
  });
}

const sorted = (names: readonly string[]) => [...new Set(names)].sort();
const expected = (name: string, engine: 'sqlite' | 'postgres' | 'postgresEmpty') => {
  const { both = [], sqlite = [], postgres = [], postgresEmpty = postgres } = PLANS[name] ?? {};
  return sorted([...both, ...{ sqlite, postgres, postgresEmpty }[engine]]);
};

test('the plan of every statement of both engines is listed', () => {
  assert.deepEqual(SHARED_QUERIES.map(({ name }) => name).sort(), Object.keys(PLANS).sort());
  const texts = globSync('**/*.ts', { cwd: SQL }).map((file) => readFileSync(join(SQL, file), 'utf8'));
  const groups = texts.flatMap((text) => [...text.matchAll(/ = queries\('(\w+)'/g)].map(([, name]) => name));
  assert.deepEqual(
    groups.sort(),
    sorted(SHARED_QUERIES.map(({ name }) => name.replace(/\..*/, ''))),
    'a group of statements is missing in stores/queries.ts',
  );
});

test('SQLite runs each by its indexes', () => {
  using db = new DatabaseSync(':memory:');
  migrate(db);
  indexUsers(db, INDEXES);
  const used = (text: string) => sorted(sqliteIndexes(db, text));
  for (const { name, sqlite } of SHARED_QUERIES) {
    assert.deepEqual(used(sqlite), expected(name, 'sqlite'), name);
  }
  assert.deepEqual(used('SELECT 1 FROM jobs AS j WHERE error IS NULL'), ['jobs.key*'], 'a scan is seen');
});

describe('PostgreSQL', { skip: withoutPostgres ?? false }, () => {
  test('runs each by the same indexes, whatever it knows about the tables', async () => {
    const url = await postgresDatabase();
    await using database = await openDatabase(url, { userIndexes: INDEXES });
    assert.equal(await database.users.lastId(), 0);
    await using connection = await Connection.open(url);
    const used = async (text: string) => {
      const [row = []] = await connection.run(
        { text: `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}` },
        undefined,
      );
      const [explained] = row[0] as readonly { readonly Plan: PlanNode }[];
      assert.ok(explained !== undefined);
      return sorted(indexesOf(explained.Plan));
    };
    const check = async (when: 'postgres' | 'postgresEmpty', { name, postgres }: Query) => {
      assert.deepEqual(await used(postgres), expected(name, when), `${name}: ${when}`);
    };
    for (const query of SHARED_QUERIES) await check('postgresEmpty', query);
    await connection.run({ text: FILL }, undefined);
    for (const query of SHARED_QUERIES) await check('postgres', query);
    assert.deepEqual(await used('SELECT 1 FROM jobs WHERE error IS NULL'), ['jobs*'], 'a scan is seen');
  });
});
