import { DatabaseOpenError } from '../core/errors.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import type { Relation } from '../relations/relation.ts';
import type { HealthIndicator, HealthResult } from '../telemetry/health.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { InSpan } from '../telemetry/opentelemetry.ts';
import { type DatabaseObserver, READ_SAMPLE, type ReadTally } from './batch-queue.ts';
import { type Database, databaseAt, type OpenOptions } from './database.ts';
import type { DeclaredTables, IntrospectOptions } from './existing/declare.ts';
import type { FoundTable } from './existing/found.ts';
import type { SchemaSession } from './schema/steps.ts';
import { opening } from './sqlite/migrate.ts';
import { migrateFile, openForSchema, openSqlite, pendingInFile } from './sqlite/open.ts';

/**
 * Opens a database by its URL: `sqlite:<path>`, `sqlite::memory:` or `postgres://...`. Fails with
 * DatabaseOpenError; messages omit the URL, which may contain a password.
 */
export function openDatabase(url: `sqlite:${string}`, options?: OpenOptions): Database;
export function openDatabase(url: string, options?: OpenOptions): MaybePromise<Database>;
export function openDatabase(url: string, options: OpenOptions = {}): MaybePromise<Database> {
  const { engine, place } = databaseAt(url);
  return engine === 'sqlite' ? openSqlite(place, options) : openPostgres(place, options);
}

/** Imported on demand, so that only users of PostgreSQL load its driver. */
async function openPostgres(url: string, options: OpenOptions): Promise<Database> {
  const engine = await import('./postgres/open.ts');
  return engine.openPostgres(url, options);
}

const UP: HealthResult = { status: 'UP' };

/** A hung fsync is DOWN after this, in milliseconds: longer than any commit that a client would wait for. */
const WRITER_TIMEOUT = 2_000;

/** Checks that the database answers a read. */
export function databaseCheck(database: Pick<Database, 'ping'>): HealthIndicator {
  return { name: 'db', check: () => whenReady(database.ping(), () => UP) };
}

/** Checks that writes commit: a hung disk blocks the writer while reads still answer. */
export function writerCheck(database: Pick<Database, 'pingWriter'>): HealthIndicator {
  return {
    name: 'writer',
    timeoutMs: WRITER_TIMEOUT,
    check: () => whenReady(database.pingWriter(), () => UP),
  };
}

/** From a fast fsync to a failing disk, in seconds. */
const COMMIT_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5];

/** Declares the meters of the database: reads, writes and commits. */
export function databaseMeters(metrics: Metrics): DatabaseObserver {
  const times = metrics.timer('database.read.sample', {
    description: `Read duration by operation, from a sample of one in ${READ_SAMPLE} reads`,
    tags: ['operation'],
  });
  const commits = metrics.timer('database.commits', {
    description: 'Commit duration, from sending the first write of a batch to its result',
    buckets: COMMIT_BUCKETS,
  });
  const writes = metrics.counter('database.writes', {
    description: 'Writes by outcome; divided by the number of commits: the mean batch size',
    tags: ['outcome'],
  });
  const waiting = new Set<{ readonly began: number }>();
  const age = 'How long the oldest write that was sent has been waiting for its commit; 0 if none is';
  metrics.gauge('database.write.age', { unit: 'seconds', description: age }, () => {
    const [oldest] = waiting;
    return oldest === undefined ? 0 : (performance.now() - oldest.began) / 1_000;
  });
  const stored = writes.with('outcome', 'stored');
  const failures = writes.with('outcome', 'failed');

  return {
    reads(operation) {
      const series = times.with('operation', operation);
      const tally: ReadTally = { count: 0, timed: (seconds) => series.record(seconds) };
      const options = { description: 'Reads by operation', tags: { operation } };
      metrics.counter('database.reads', options, () => tally.count);
      return tally;
    },
    sent(began) {
      const write = { began };
      waiting.add(write);
      return () => waiting.delete(write);
    },
    batch(total, failed, seconds) {
      commits.record(seconds);
      stored.increment(total - failed);
      failures.increment(failed);
    },
  };
}

/** Declares the counter of followers that did not read their events before these were removed. */
export function addFeedCounters(
  metrics: Metrics,
  feeds: Readonly<Record<string, { readonly passed: number } | undefined>>,
): void {
  const description =
    'Followers of changes that ended because their next events were removed before they were read';
  for (const [feed, events] of Object.entries(feeds))
    if (events !== undefined)
      metrics.counter('changes.passed', { description, tags: { feed } }, () => events.passed);
}

/** Declares the gauge of the WAL size, on engines where the process has its own WAL. */
export function addWalGauge(metrics: Metrics, { walBytes }: Pick<Database, 'walBytes'>): void {
  if (walBytes === undefined) return;
  const description = 'Size of the write-ahead log of SQLite';
  metrics.gauge('database.wal.size', { unit: 'bytes', description }, walBytes);
}

/** Declares the counter of reads that a replica answers, if there is one. */
export function addReplicaCounter(metrics: Metrics, { replicaReads }: Pick<Database, 'replicaReads'>): void {
  if (replicaReads === undefined) return;
  const description = 'Reads of users and relations that a replica answered';
  metrics.counter('database.replica.reads', { description }, replicaReads);
}

/**
 * Applies the pending migrations of the engine, or of `folder`; resolves to the names of those applied. Fails
 * with DatabaseOpenError.
 */
export async function migrateDatabase(url: string, folder?: URL): Promise<readonly string[]> {
  const { engine, place } = databaseAt(url);
  if (engine === 'sqlite') return opening(place, () => migrateFile(place, folder));
  const [{ onFirst }, { migrate }] = await postgres();
  return onFirst(place, (connection) => migrate(connection, { folder }));
}

/** The names of the pending migrations; changes nothing. Fails with DatabaseOpenError. */
export async function pendingMigrations(url: string, folder?: URL): Promise<readonly string[]> {
  const { engine, place } = databaseAt(url);
  if (engine === 'sqlite') return opening(place, () => pendingInFile(place, folder));
  const [{ onFirst }, { pendingMigrations }] = await postgres();
  return onFirst(place, (connection) => pendingMigrations(connection, { folder }));
}

/**
 * Runs `work` on the tables of relations. To `look` changes nothing and creates no file. Fails with
 * DatabaseOpenError, or as `work` does.
 */
export async function withSchema<T>(
  url: string,
  use: 'look' | 'migrate',
  work: (session: SchemaSession) => Promise<T>,
): Promise<T> {
  const { engine, place } = databaseAt(url);
  if (engine === 'sqlite') {
    const { sqliteSession } = await import('./schema/sqlite-session.ts');
    using db = opening(place, () => openForSchema(place, use));
    return await work(sqliteSession(db));
  }
  const [[{ onFirst }], { postgresSession }] = await Promise.all([
    postgres(),
    import('./schema/postgres-session.ts'),
  ]);
  // Only problems of the connection are problems of opening.
  const [result] = await onFirst(place, (connection) =>
    Promise.allSettled([work(postgresSession(connection))]),
  );
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}

/**
 * Relations with what the database says of existing tables. Fails with DatabaseOpenError, which lists every difference
 * between the declaration and the catalogue.
 */
export async function withExistingTables(
  url: string,
  relations: readonly Relation[],
): Promise<readonly Relation[]> {
  const schemas = new Set(relations.flatMap(({ existing }) => (existing ? [existing.schema] : [])));
  if (schemas.size === 0) return relations;
  const [{ readFoundTables }, { resolveRelations }] = await Promise.all([
    import('./existing/declare.ts'),
    import('./existing/resolve.ts'),
  ]);
  const problems: string[] = [];
  const found = await withSchema(url, 'look', async (session) => {
    const tables = new Map<string | undefined, readonly FoundTable[]>();
    for (const schema of schemas) tables.set(schema, await readFoundTables(session, schema));
    return resolveRelations(session.engine, relations, tables, problems);
  });
  if (problems.length === 0) return found;
  throw new DatabaseOpenError(
    `The tables of the database are not those of the declaration:\n${problems.map((line) => `  ${line}`).join('\n')}`,
  );
}

/** The declaration of the tables that a database has. Fails with DatabaseOpenError. */
export async function existingTables(url: string, options: IntrospectOptions): Promise<DeclaredTables> {
  const { declareTables, readFoundTables } = await import('./existing/declare.ts');
  return withSchema(url, 'look', async (session) =>
    declareTables(session.engine, await readFoundTables(session, options.schema), options),
  );
}

/** Imported on demand, so that only users of PostgreSQL load its driver. */
function postgres() {
  return Promise.all([import('./postgres-pool/connector.ts'), import('./postgres/migrate.ts')]);
}

/** The SQL operation of each traced method of the user store. */
const USER_OPERATIONS: Readonly<Record<string, string>> = {
  read: 'SELECT',
  readJson: 'SELECT',
  page: 'SELECT',
  all: 'SELECT',
  byId: 'SELECT',
  add: 'INSERT',
  create: 'INSERT',
  createOnce: 'INSERT',
  update: 'UPDATE',
  change: 'UPDATE',
  remove: 'DELETE',
  removeIf: 'DELETE',
};
const LIST_OPERATIONS: Readonly<Record<string, string>> = { read: 'SELECT', page: 'SELECT', list: 'SELECT' };
const INBOX_OPERATIONS: Readonly<Record<string, string>> = { append: 'INSERT', appendAll: 'INSERT' };

/** Wraps a database so that its reads and commits become spans of the traced request that makes them. */
export function tracedDatabase(
  database: Database,
  system: 'sqlite' | 'postgresql',
  inSpan: InSpan,
): Database {
  const traced = <T extends object>(store: T, table: string, operations: Readonly<Record<string, string>>) =>
    tracedStore(store, operations, (operation, work) => {
      const attributes = {
        'db.system.name': system,
        'db.operation.name': operation,
        'db.collection.name': table,
      };
      return inSpan(`${operation} ${table}`, attributes, work);
    });
  const users = traced(database.users, 'users', USER_OPERATIONS);
  const lists = traced(database.users.lists, 'users', LIST_OPERATIONS);
  const usersWithLists = new Proxy(users, {
    get: (target, name) => (name === 'lists' ? lists : Reflect.get(target, name)),
  });
  const inbox = traced(database.inbox, 'deliveries', INBOX_OPERATIONS);
  return new Proxy(database, {
    get(target, name) {
      if (name === 'users') return usersWithLists;
      if (name === 'inbox') return inbox;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/**
 * Wraps a store in a Proxy because its private members require the store itself as `this`: each method is
 * called on it, in a span if it has an operation.
 */
function tracedStore<T extends object>(
  store: T,
  operations: Readonly<Record<string, string>>,
  run: <R>(operation: string, work: () => R) => R,
): T {
  const methods = new Map<string | symbol, unknown>();
  return new Proxy(store, {
    get(target, name) {
      const known = methods.get(name);
      if (known !== undefined) return known;
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const operation = typeof name === 'string' ? operations[name] : undefined;
      const method =
        operation === undefined
          ? value.bind(target)
          : (...args: readonly unknown[]) => run(operation, () => Reflect.apply(value, target, args));
      methods.set(name, method);
      return method;
    },
  });
}
