import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createListener, ReplyBudget } from '@portico/transport';
import type { LiveCertificate } from '@portico/transport/tls';
import type { FastifyInstance } from 'fastify';
import type { DestinationStream, Logger } from 'pino';
import { isAudited } from '../access/audit.ts';
import { trustProxy } from '../config/options/doors.ts';
import { intervalOf } from '../config/options/management.ts';
import { type Door, type DoorName, optionOf, type Settings } from '../config/options/options.ts';
import { KnownSecrets } from '../core/redaction.ts';
import { listRoutes } from '../http/routes.ts';
import { createEvents } from '../inbox/events.ts';
import { hasRules, type Relation, servesRelations, USERS } from '../relations/relation.ts';
import { backupFileOf } from '../sql/backup/backup.ts';
import { ScheduledBackups } from '../sql/backup/scheduled.ts';
import type { Database, Replica } from '../sql/database.ts';
import {
  addFeedCounters,
  addReplicaCounter,
  addWalGauge,
  databaseMeters,
  openDatabase,
} from '../sql/open.ts';
import { Readiness } from '../telemetry/health.ts';
import { openLog } from '../telemetry/log.ts';
import { Loggers, LogTail } from '../telemetry/loggers.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { loadOpenTelemetry } from '../telemetry/opentelemetry.ts';
import { accessLog, RequestStats, RequestTail } from '../telemetry/request-stats.ts';
import { addDiskMetrics, observeRuntime } from '../telemetry/runtime.ts';
import { auditCertificates, auditRefusals, openAudit } from './audit.ts';
import type { AppContext, OpenDoor } from './context.ts';
import { asksForCredentials, configuredSecrets, warnOfExposedFiles } from './door-security.ts';
import { addSetup } from './door-setup.ts';
import { dataFolder, openApi, openGraphqlDoor, openManagementDoor, openRestDoor } from './doors.ts';
import { type Config, withTables } from './load-config.ts';
import { openPortal, openSending, openWebhookDoor } from './webhook-door.ts';

/** Time that running requests and handlers have after a stop began, in milliseconds. */
const STOP_DEADLINE = 8_000;

/** Settings of a program that embeds the service, in addition to the configuration. */
export interface ServiceOptions {
  /** Receives one JSON line per log entry. Default: standard output. */
  readonly logStream?: DestinationStream | undefined;
}

/** The whole program: disposing of it stops it. */
export interface Service extends AsyncDisposable {
  /**
   * The Fastify instance of each open door. Hooks and routes added before `listen` apply to every request; a
   * door with a hook that sees requests sends each of them through Fastify, without the fast path.
   */
  readonly doors: Readonly<Partial<Record<DoorName, FastifyInstance>>>;
  readonly log: Logger;
  /** All meters; a program that embeds the service may add its own. */
  readonly metrics: Metrics;
  /** Aborted when the service can no longer keep its promises and should end; the reason is the error. */
  readonly failed: AbortSignal;
  /** Aborted when the management door receives a shutdown request; the caller then stops the service. */
  readonly stopRequested: AbortSignal;
  /** Opens all doors or none; resolves to their base URLs. Fails with ListenError. */
  listen(): Promise<Readonly<Partial<Record<DoorName, string>>>>;
  /** The requests and jobs that a stop waits for; empty until it closes the doors. */
  unfinished(): Unfinished;
  /** Records the crash of running handlers. The caller listens for uncaught errors and ends the process. */
  crash(error: unknown): Promise<void>;
  /** Whether a stop has ended. */
  readonly stopped: boolean;
  /** Fails readiness, drains the doors, settles or releases deliveries, closes the database. */
  stop(): Promise<void>;
}

/** Wires the program; nothing listens yet. Fails with DatabaseOpenError, with nothing left open. */
export async function createService(given: Config, { logStream }: ServiceOptions = {}): Promise<Service> {
  const config = await withTables(given);
  const { settings } = config;
  const isOpen = (door: Door) => settings.interfaces.includes(door);
  await using opening = new AsyncDisposableStack();
  const secrets = new KnownSecrets(configuredSecrets(config));
  const logTail = new LogTail();
  const requestTail = opening.use(new RequestTail());
  const log = await openLog({ level: settings['log.level'], stream: logStream, secrets, tail: logTail });
  const loggers = opening.use(new Loggers(log));
  const readiness = new Readiness();
  const stopRequest = new AbortController();
  const metrics = opening.use(new Metrics({ log }));
  opening.use(observeRuntime(metrics));

  const openTelemetry = await loadOpenTelemetry((error) =>
    log.warn(
      { err: error },
      'an OpenTelemetry SDK is registered, but no @opentelemetry/api that fits is found',
    ),
  );
  const telemetry = openTelemetry && (await import('./telemetry.ts'));
  const tracing = openTelemetry && telemetry?.openTracing(openTelemetry, settings['tracing.oneIn']);
  const opened = needsDatabase(config)
    ? opening.use(
        await openDatabase(settings['database.url'], {
          observer: databaseMeters(metrics),
          replica: replicaOf(settings),
          mayMigrate: settings['database.migrate'],
          relationSteps: settings['limits.database.relationSteps'],
          forService: true,
          userIndexes: { search: settings['rest.search'], uniqueEmail: settings['users.uniqueEmail'] },
          userEvents: {
            max: settings['limits.users.maxEvents'],
            maxAge: settings['limits.users.eventHours'] * 3_600_000,
          },
          onHeldWal: ({ heldMs, bytes }) => {
            if (backups?.isRunning) return;
            const seconds = Math.round(heldMs / 1_000);
            log.warn({ seconds, walBytes: bytes }, 'a long read of another program lets the WAL grow');
          },
        }),
      )
    : undefined;
  if (opened !== undefined) warnOfExposedFiles(settings, log);
  const hasRelations =
    config.relations.length > 0 && (isOpen('rest') || isOpen('webhook') || isOpen('graphql'));
  const relations = hasRelations ? await opened?.openRelations(config.relations) : undefined;
  if (relations !== undefined && relations.undeclared.length > 0)
    log.warn(
      { undeclared: relations.undeclared },
      'the database has columns or tables that no relation declares',
    );
  if (relations !== undefined) warnOfUnruled(config.relations, log);
  if (config.notes.length > 0)
    log.warn({ tables: config.notes }, 'the database has tables or columns that are not served');
  const database = opened && (tracing?.database(opened, settings['database.url']) ?? opened);
  if (opened !== undefined) {
    addWalGauge(metrics, opened);
    addReplicaCounter(metrics, opened);
    addFeedCounters(metrics, { users: opened.userFeed, relations: relations?.changes });
  }
  addDiskMetrics(metrics, dataFolder(settings['database.url'], database !== undefined));
  const backups = database && scheduledBackups(settings, { loggers, metrics });
  if (backups !== undefined) opening.use(backups);
  const audit = openAudit(settings, database, loggers);
  if (audit !== undefined) opening.use(audit);
  const api = await openApi(config, { loggers, secrets, database, audit });
  if (api !== undefined) opening.use(api);
  const trusted = trustProxy(settings['http.trustProxy']);
  const certificate = await certificateOf(settings, loggers);
  if (certificate !== undefined) opening.use(certificate);
  const replyBudget = new ReplyBudget(settings['limits.http.maxUnreadBytes']);
  const doors = new Map<DoorName, OpenDoor>();
  /** The address of the portal on this machine, once it listens. */
  let portalUrl: string | undefined;
  const sending = openSending(config, database, { metrics, loggers, portalUrl: () => portalUrl });
  const context: AppContext = {
    config,
    secrets,
    log,
    loggers,
    logTail,
    requestTail,
    doors,
    metrics,
    readiness,
    api,
    events: opening.use(createEvents(loggers.child('inbox'), metrics)),
    database: () => database ?? fail('no door was known to need a database'),
    openedDatabase: () => database,
    relations: relations?.stores ?? new Map(),
    relationFeed: relations?.changes,
    sending,
    audit,
    tracing,
    backups,
    apis: { doors: new Map() },
    onStop: (resource) => opening.use(resource),
    requestStop: () => stopRequest.abort(),
    listener(door, errors, bodyBudget) {
      const { host } = settings;
      const isPortal = door === 'portal';
      const portHint = isPortal
        ? 'webhook.sending.portal.port'
        : `--${door}-port or ${optionOf(`${door}.port`).env}`;
      const port = isPortal ? (config.code.sending?.portal?.port ?? 0) : settings[`${door}.port`];
      const created = opening.use(
        createListener({
          door,
          host,
          port,
          portHint,
          log: log.child({ logger: door }),
          errors,
          fastPath: settings['http.fastPath'],
          maxConnections: settings['limits.http.maxConnections'],
          // All clients of a proxy share its connections.
          maxConnectionsPerAddress:
            trusted !== false ? undefined : settings['limits.http.maxConnectionsPerAddress'],
          ...(bodyBudget && { bodyBudget }),
          replyBudget,
          certificate,
          onRefusedCertificate: auditCertificates(audit, door),
          tracing: tracing?.requests(door),
          trustProxy: trusted,
          hosts: isPortal || anyHost(door, config) ? undefined : settings['http.hosts'],
        }),
      );
      const stats = new RequestStats(door, metrics, requestTail);
      stats.listen(created.app);
      // Fastify wraps the logger it is given.
      loggers.add(door, created.app.log);
      const { app } = created;
      const routes = listRoutes(app);
      if (settings['log.requests']) stats.read(accessLog(app.log));
      if (audit !== undefined) {
        const record = auditRefusals(audit, door);
        stats.read((exchange) => {
          const code = String(exchange.responseHeaders()['x-error-code'] ?? '');
          record({ ...exchange, headers: exchange.requestHeaders, code });
        }, isAudited);
      }
      created.watchHooks();
      const setup = isPortal ? undefined : config.code.setups[door];
      const basePath = settings['management.basePath'];
      const ownPath = door === 'management' && basePath !== '/' ? basePath : undefined;
      const explain =
        isPortal || setup === undefined
          ? undefined
          : addSetup(app, { door, setup, file: config.file, secrets, ownPath, routes });
      doors.set(door, {
        ...created,
        routes,
        stats,
        build: async () => {
          await app.ready().then(undefined, (failure: unknown) => {
            throw explain === undefined ? failure : explain(failure);
          });
        },
      });
      return app;
    },
  };

  if (isOpen('graphql')) openGraphqlDoor(context);
  if (isOpen('rest')) openRestDoor(context);
  const webhookWork = isOpen('webhook') ? openWebhookDoor(context) : undefined;
  if (sending !== undefined && config.code.sending?.portal !== undefined) openPortal(context, sending);
  if (isOpen('management')) openManagementDoor(context, webhookWork?.secrets);

  const exported = openTelemetry && telemetry?.exportMeters(openTelemetry, metrics);
  if (exported !== undefined) opening.use(exported);
  const resources = opening.move();
  let stopping: Promise<void> | undefined;
  let closing = false;
  let stopped = false;

  function unfinished(): Unfinished {
    if (!closing) return { requests: new Map(), jobs: new Map() };
    const requests = new Map([...doors].map(([door, { inProgress }]) => [door, inProgress()]));
    return { requests, jobs: webhookWork?.running() ?? new Map() };
  }

  async function stop(): Promise<void> {
    const served = readiness.accepting;
    readiness.refuse();
    const managementDoor = doors.get('management');
    const others = [...doors.values()].filter((door) => door !== managementDoor);
    for (const door of others) door.drain();
    if (served) await answerOn(settings['shutdown.preStopDelay'], readiness, log);
    closing = true;
    const deadline = AbortSignal.timeout(STOP_DEADLINE);
    deadline.addEventListener('abort', () => {
      const left = describeUnfinished(unfinished());
      if (left !== '') log.warn({ seconds: STOP_DEADLINE / 1_000 }, `stop deadline reached, ending ${left}`);
    });
    await Promise.all([...others.map((door) => door.close(deadline)), webhookWork?.stop(deadline)]);
    // The management door closes last, so that probes see the whole drain.
    await managementDoor?.close(deadline);
    await resources.disposeAsync();
    stopped = true;
    log.info('stopped');
  }

  /** Attempts something with all doors, waits for every attempt, and closes them all if one fails. */
  async function ofEach<T>(
    attempt: (door: OpenDoor) => Promise<T>,
  ): Promise<readonly (readonly [DoorName, T])[]> {
    const attempts = await Promise.allSettled(
      [...doors].map(async ([name, door]) => [name, await attempt(door)] as const),
    );
    const failure = attempts.find(({ status }) => status === 'rejected');
    if (failure?.status === 'rejected') {
      await Promise.all([...doors.values()].map((door) => door[Symbol.asyncDispose]()));
      throw failure.reason;
    }
    return attempts.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  }

  const service: Service = {
    doors: Object.fromEntries([...doors].map(([door, { app }]) => [door, app])),
    log,
    metrics,
    failed: database?.failed ?? new AbortController().signal,
    stopRequested: stopRequest.signal,
    async listen() {
      // Builds all doors before any listens: a setup may take long, or fail.
      await Promise.all([ofEach(({ build }) => build()), database && firstCommit(database)]);
      const urls = await ofEach(({ listen }) => listen());
      portalUrl = Object.fromEntries(urls).portal;
      await webhookWork?.start();
      backups?.start();
      readiness.accept();
      return Object.fromEntries(urls);
    },
    unfinished,
    crash: async (error) => webhookWork?.crash(error),
    get stopped() {
      return stopped;
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
    [Symbol.asyncDispose]: () => service.stop(),
  };
  return service;
}

/** Whether an open door needs the database: GraphQL does not, over users in memory and without relations. */
function needsDatabase({ settings, relations }: Config): boolean {
  const isOpen = (door: Door) => settings.interfaces.includes(door);
  const isStored = settings['graphql.users'] === 'database' || servesRelations(relations);
  return isOpen('rest') || isOpen('webhook') || (isOpen('graphql') && isStored);
}

/**
 * Whether a door accepts any Host: webhooks come through tunnels, and pages lack other credentials. Rules may let in
 * callers without any.
 */
function anyHost(door: Door, config: Config): boolean {
  const isRuled = door !== 'management' && config.relations.some(hasRules);
  return door === 'webhook' || (asksForCredentials(door, config) && !isRuled);
}

/**
 * Resolves after the first commit, or its failure, which the health check reports. SQLite's writer thread is
 * still starting when the database is open; if a door listened already, its first writes would have to wait.
 */
async function firstCommit(database: Database): Promise<void> {
  try {
    await database.pingWriter();
  } catch {}
}

/** Once a relation has rules, one without is likely to have been forgotten. */
function warnOfUnruled(relations: readonly Relation[], log: Logger): void {
  const unruled = relations.filter(({ name, rules }) => name !== USERS && rules === undefined);
  if (unruled.length === 0 || !relations.some(({ rules }) => rules !== undefined)) return;
  log.warn(
    { relations: unruled.map(({ name }) => name) },
    'some relations have rules and these have none; their scopes alone say who may read and write',
  );
}

function replicaOf(settings: Settings): Replica | undefined {
  const url = settings['database.readUrl'];
  return url === undefined ? undefined : { url, readYourWrites: settings['limits.database.readYourWrites'] };
}

function fail(bug: string): never {
  throw new Error(bug);
}

/** Waits between the failure of readiness and the closing of the doors, and logs why. */
async function answerOn(configured: number | undefined, readiness: Readiness, log: Logger): Promise<void> {
  const now = performance.now();
  const milliseconds = configured ?? readiness.preStopDelay(now);
  if (milliseconds === 0) return;
  const interval = readiness.interval(now);
  const why =
    configured !== undefined
      ? 'shutdown.preStopDelay says so'
      : interval === undefined
        ? 'requests may be in flight'
        : `/readyz is probed every ${seconds(interval)} s and must be seen failing`;
  log.info({ preStopDelay: milliseconds }, `answering for ${seconds(milliseconds)} s more: ${why}`);
  await delay(milliseconds);
}

const seconds = (milliseconds: number): number => Math.round(milliseconds / 100) / 10;

/** The work that a stop waits for: the number of requests by door, and of running jobs by target. */
interface Unfinished {
  readonly requests: ReadonlyMap<DoorName, number>;
  readonly jobs: ReadonlyMap<string, number>;
}

/** Interval between reports of a stop's progress, and before the first, in milliseconds. */
const REPORT = 500;

/** `2 requests: rest; 1 handler: slow`; empty when nothing is left. */
export function describeUnfinished({ requests, jobs }: Unfinished): string {
  const kinds = new Map([['request', new Map<string, number>(requests)]]);
  for (const [target, count] of jobs) {
    // `handler:<event>` or `forward:<name>`.
    const [kind = '', name] = split(target);
    const named = kinds.get(kind) ?? new Map<string, number>();
    kinds.set(kind, named.set(name, count));
  }
  return [...kinds].flatMap(([kind, counts]) => describeCounts(kind, counts)).join('; ');
}

function describeCounts(kind: string, counts: ReadonlyMap<string, number>): readonly string[] {
  const present = [...counts].filter(([, count]) => count > 0);
  const total = present.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return [];
  return [`${total} ${kind}${total === 1 ? '' : 's'}: ${present.map(([name]) => name).join(', ')}`];
}

function split(target: string): readonly [string, string] {
  const colon = target.indexOf(':');
  return [target.slice(0, colon), target.slice(colon + 1)];
}

/** Logs what a stop waits for, soon and on changes, until disposed of. `hint` says how to force the end. */
export function reportUnfinished(log: Logger, unfinished: () => Unfinished, hint: string): Disposable {
  let last = '';
  const report = setInterval(() => {
    const text = describeUnfinished(unfinished());
    if (text !== '' && text !== last) log.info(`waiting for ${text}${hint}`);
    last = text;
  }, REPORT).unref();
  return { [Symbol.dispose]: () => clearInterval(report) };
}

/** The backups that the configuration schedules; undefined if there are none. */
function scheduledBackups(
  settings: Settings,
  { loggers, metrics }: { readonly loggers: Loggers; readonly metrics: Metrics },
): ScheduledBackups | undefined {
  const { 'backup.every': every, 'backup.folder': folder, 'backup.keep': keep } = settings;
  if (every === undefined) return undefined;
  return new ScheduledBackups({
    file: backupFileOf(settings['database.url'], 'pg_dump'),
    plan: { every: intervalOf(every), folder, keep },
    log: loggers.child('backup'),
    metrics,
  });
}

/** The certificate of the doors, if they speak TLS. Rejects with CertificateError. */
async function certificateOf(settings: Settings, loggers: Loggers): Promise<LiveCertificate | undefined> {
  const { 'tls.cert': cert, 'tls.key': key } = settings;
  if (cert === undefined || key === undefined) return undefined;
  // TLS is loaded only if it is used.
  const { LiveCertificate } = await import('@portico/transport/tls');
  const log = loggers.child('tls');
  const clientCas = (['management', 'webhook'] as const).flatMap((door) => {
    const path = settings[`${door}.clientCa`];
    return path === undefined ? [] : [[door, resolve(path)] as const];
  });
  const files = { cert: resolve(cert), key: resolve(key), clientCas: new Map(clientCas) };
  return new LiveCertificate(files, (problem, { validTo }) => {
    if (problem === undefined) log.info({ validTo }, 'TLS certificate reloaded');
    else log.error({ err: problem, validTo }, 'changed TLS files unusable, old ones kept');
  });
}
