import type { FastifyInstance } from 'fastify';
import type { DestinationStream, Logger } from 'pino';
import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';
import { optionOf, type Settings } from '../config/options/options.ts';
import { trustProxy } from '../config/options/trusted-proxies.ts';
import { KnownSecrets } from '../core/redaction.ts';
import type { Database } from '../database/database.ts';
import { addWalGauge, databaseMeters } from '../database/database-metrics.ts';
import { openDatabase } from '../database/open-database.ts';
import type { Replica } from '../database/open-options.ts';
import { accessLog } from '../http/access-log.ts';
import { ReplyBudget } from '../http/reply/reply-budget.ts';
import { timeRequests } from '../http/request-metrics.ts';
import { listRoutes } from '../http/route-list.ts';
import { createListener } from '../http/server/listener.ts';
import { createEvents } from '../inbox/inbox-events.ts';
import { Readiness } from '../observability/health/readiness.ts';
import { RequestTail } from '../observability/history/request-tail.ts';
import { openLog } from '../observability/log/log.ts';
import { LogTail } from '../observability/log/log-tail.ts';
import { Loggers } from '../observability/log/loggers.ts';
import { Metrics } from '../observability/metrics/metrics.ts';
import { loadOpenTelemetry } from '../observability/opentelemetry/load-api.ts';
import { addDiskMetrics } from '../observability/runtime/disk-metrics.ts';
import { observeRuntime } from '../observability/runtime/runtime-metrics.ts';
import { openApi } from './api/open-api.ts';
import { configuredSecrets } from './configured-secrets.ts';
import { asksForCredentials } from './door-security.ts';
import { addSetup } from './door-setup.ts';
import { certificateOf } from './doors/certificate.ts';
import { openGraphqlDoor } from './doors/graphql-door.ts';
import { openManagementDoor } from './doors/management-door.ts';
import { openRestDoor } from './doors/rest-door.ts';
import { openWebhookDoor } from './doors/webhook-door.ts';
import { warnOfExposedFiles } from './exposed-files.ts';
import { dataFolder } from './health-checks.ts';
import { linger } from './linger.ts';
import { auditCertificates, auditRefusals, openAudit } from './observe/audit.ts';
import type { OpenDoor, Parts } from './parts.ts';
import { scheduledBackups } from './scheduled-backups.ts';
import { describeUnfinished, type Unfinished } from './unfinished.ts';

/** How long running requests and handlers may take once the stop began, in milliseconds. */
const STOP_DEADLINE = 8_000;

/** What a program that embeds the service may set beside the configuration. */
export interface ServiceOptions {
  /** Gets one JSON line per log entry; standard output when absent. */
  readonly logStream?: DestinationStream | undefined;
}

/** The whole program: disposing of it stops it. */
export interface Service extends AsyncDisposable {
  /**
   * The Fastify instance of every door that is open. What is added to it before `listen` counts for every request: a
   * hook that can see requests has each of them go through Fastify, without the fast path.
   */
  readonly doors: Readonly<Partial<Record<Door, FastifyInstance>>>;
  readonly log: Logger;
  /** All meters; a program that embeds the service may add its own. */
  readonly metrics: Metrics;
  /** Aborted when the service can no longer keep its promises and should end; the reason says why. */
  readonly failed: AbortSignal;
  /** Aborted when the management door receives a shutdown request; the caller then stops the service. */
  readonly stopRequested: AbortSignal;
  /** Opens all doors or none; resolves to their base URLs. Fails with ListenError. */
  listen(): Promise<Readonly<Partial<Record<Door, string>>>>;
  /** What a stop still waits for once it closes the doors; nothing before. */
  unfinished(): Unfinished;
  /** Records what an error that nobody handled means for running handlers; the caller is its listener, and ends the process. */
  crash(error: unknown): Promise<void>;
  /** Whether a stop has ended. */
  readonly stopped: boolean;
  /** Fails readiness, drains the doors, settles or releases deliveries, closes the database. */
  stop(): Promise<void>;
}

/**
 * Wires the program from its configuration; nothing listens yet.
 * Fails with DatabaseOpenError, after everything that was opened is closed again.
 */
export async function createService(config: Config, { logStream }: ServiceOptions = {}): Promise<Service> {
  const { settings } = config;
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
  const telemetry = openTelemetry && (await import('./observe/telemetry.ts'));
  const tracing = openTelemetry && telemetry?.openTracing(openTelemetry, settings['tracing.oneIn']);
  const opened = needsDatabase(settings)
    ? opening.use(
        await openDatabase(settings['database.url'], {
          observer: databaseMeters(metrics),
          replica: replicaOf(settings),
          mayMigrate: settings['database.migrate'],
          forService: true,
          partitions: settings['webhook.partitions'],
          userIndexes: { search: settings['rest.search'], uniqueEmail: settings['users.uniqueEmail'] },
          userEvents: { max: settings['users.maxEvents'], maxAge: settings['users.eventHours'] * 3_600_000 },
          onHeldWal: ({ heldMs, bytes }) => {
            if (backups?.isRunning) return;
            const seconds = Math.round(heldMs / 1_000);
            log.warn({ seconds, walBytes: bytes }, 'a long read of another program lets the WAL grow');
          },
        }),
      )
    : undefined;
  if (opened !== undefined) warnOfExposedFiles(settings, log);
  const database = opened && (tracing?.database(opened, settings['database.url']) ?? opened);
  if (opened !== undefined) addWalGauge(metrics, opened);
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
  const replyBudget = new ReplyBudget(settings['http.maxUnreadBytes']);
  const doors = new Map<Door, OpenDoor>();
  const parts: Parts = {
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
    audit,
    tracing,
    backups,
    apis: { doors: new Map() },
    onStop: (resource) => opening.use(resource),
    requestStop: () => stopRequest.abort(),
    listener(door, errors, bodyBudget) {
      const portHint = `--${door}-port or ${optionOf(`${door}.port`).env}`;
      const { host, [`${door}.port` as const]: port } = settings;
      const created = opening.use(
        createListener({
          door,
          host,
          port,
          portHint,
          log: log.child({ logger: door }),
          errors,
          fastPath: settings['http.fastPath'],
          maxConnections: settings['http.maxConnections'],
          // A proxy has the connections of all of its clients.
          maxConnectionsPerAddress: trusted !== false ? undefined : settings['http.maxConnectionsPerAddress'],
          ...(bodyBudget && { bodyBudget }),
          replyBudget,
          certificate,
          onRefused: auditRefusals(audit, door),
          onRefusedCertificate: auditCertificates(audit, door),
          tracing: tracing?.requests(door),
          trustProxy: trusted,
          hosts: anyHost(door, config) ? undefined : settings['http.hosts'],
        }),
      );
      const traffic = timeRequests(created.app, door, metrics, requestTail);
      // Fastify wraps the logger that it is given.
      loggers.add(door, created.app.log);
      const { app } = created;
      const routes = listRoutes(app);
      if (settings['log.requests']) created.recordExchanges(accessLog(app.log));
      created.watchHooks();
      const setup = config.code.setups[door];
      const basePath = settings['management.basePath'];
      const ownPath = door === 'management' && basePath !== '/' ? basePath : undefined;
      const explain = setup && addSetup(app, { door, setup, file: config.file, secrets, ownPath, routes });
      doors.set(door, {
        ...created,
        routes,
        traffic,
        build: async () => {
          await app.ready().then(undefined, (failure: unknown) => {
            throw explain === undefined ? failure : explain(failure);
          });
        },
      });
      return app;
    },
  };

  const isOpen = (door: Door) => settings.interfaces.includes(door);
  if (isOpen('graphql')) openGraphqlDoor(parts);
  if (isOpen('rest')) openRestDoor(parts);
  const webhookWork = isOpen('webhook') ? openWebhookDoor(parts) : undefined;
  if (isOpen('management')) openManagementDoor(parts, webhookWork?.secrets);

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
    if (served) await linger(settings['shutdown.linger'], readiness, log);
    closing = true;
    const deadline = AbortSignal.timeout(STOP_DEADLINE);
    deadline.addEventListener('abort', () => {
      const left = describeUnfinished(unfinished());
      if (left !== '') log.warn({ seconds: STOP_DEADLINE / 1_000 }, `stop deadline reached, ending ${left}`);
    });
    await Promise.all([...others.map((door) => door.close(deadline)), webhookWork?.stop(deadline)]);
    // Probes see the drain to its end.
    await managementDoor?.close(deadline);
    await resources.disposeAsync();
    stopped = true;
    log.info('stopped');
  }

  /** Does something with all doors, or closes them: all have ended their attempt then, so none opens afterwards. */
  async function ofEach<T>(
    attempt: (door: OpenDoor) => Promise<T>,
  ): Promise<readonly (readonly [Door, T])[]> {
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
      // None listens while another one may turn out not to be buildable: a setup may take its time.
      await Promise.all([ofEach(({ build }) => build()), database && firstCommit(database)]);
      const urls = await ofEach(({ listen }) => listen());
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

/** Whether one of the open doors works on the database: GraphQL over its own users needs none. */
function needsDatabase({ interfaces, 'graphql.users': graphqlUsers }: Settings): boolean {
  const isOpen = (door: Door) => interfaces.includes(door);
  return isOpen('rest') || isOpen('webhook') || (isOpen('graphql') && graphqlUsers === 'database');
}

/** Whether a door takes requests for any host: senders reach webhooks by tunnels, and no other page has credentials. */
function anyHost(door: Door, config: Config): boolean {
  return door === 'webhook' || asksForCredentials(door, config);
}

/**
 * Resolves once a commit has gone through, or failed, which is the health check's to tell. The writing thread of SQLite is
 * still starting when the database is open; a door that listened already would have its first writes wait for it.
 */
async function firstCommit(database: Database): Promise<void> {
  try {
    await database.pingWriter();
  } catch {}
}

function replicaOf(settings: Settings): Replica | undefined {
  const url = settings['database.readUrl'];
  return url === undefined ? undefined : { url, readYourWrites: settings['database.readYourWrites'] };
}

function fail(bug: string): never {
  throw new Error(bug);
}
