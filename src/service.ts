import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { DestinationStream, Logger } from 'pino';
import type { Door } from './config/door.ts';
import type { Config } from './config/load.ts';
import { optionOf, type Settings } from './config/options.ts';
import type { Database } from './database/database.ts';
import { openDatabase } from './database/open-database.ts';
import { graphqlErrors } from './graphql/error-format.ts';
import { graphql } from './graphql/graphql.ts';
import { usersSchema } from './graphql/users-schema.ts';
import type { ErrorFormat } from './http/error-format.ts';
import { createListener, type Listener } from './http/listener.ts';
import { Dispatcher } from './inbox/dispatcher.ts';
import { managementErrors } from './management/error-format.ts';
import { management } from './management/management.ts';
import { codeCheck } from './observability/code-check.ts';
import { createEvents } from './observability/events.ts';
import { HealthRegistry } from './observability/health-registry.ts';
import { openLog } from './observability/log.ts';
import { Metrics } from './observability/metrics.ts';
import { addProcessMetrics } from './observability/process-metrics.ts';
import { Readiness } from './observability/readiness.ts';
import { timeRequests } from './observability/request-metrics.ts';
import { readPackageInfo } from './package-info.ts';
import { restErrors } from './rest/error-format.ts';
import { rest } from './rest/rest.ts';
import { announcingUserStore } from './users/announcing-user-store.ts';
import { MemoryUserCollection } from './users/memory-user-collection.ts';
import { StoredUserCollection } from './users/stored-user-collection.ts';
import { UserFeed } from './users/user-feed.ts';
import { contractHandlers } from './webhook/contract-handlers.ts';
import { webhookErrors } from './webhook/error-format.ts';
import { webhook } from './webhook/webhook.ts';

/** How long running requests and handlers may take once the stop began, in milliseconds. */
const STOP_DEADLINE = 8_000;

export interface ServiceOptions {
  /** Gets one JSON line per log entry; standard output when absent. */
  readonly logStream?: DestinationStream;
}

/** The whole program: disposing of it stops it. */
export interface Service extends AsyncDisposable {
  /** The Fastify instance of every door that is open. */
  readonly doors: Readonly<Partial<Record<Door, FastifyInstance>>>;
  readonly log: Logger;
  /** Aborted when the service can no longer keep its promises and should end; the reason says why. */
  readonly failed: AbortSignal;
  /** Opens all doors or none; resolves to their base URLs. Fails with ListenError. */
  listen(): Promise<Readonly<Partial<Record<Door, string>>>>;
  /** Turns readiness, drains the doors, settles or gives back deliveries, closes the database. */
  stop(): Promise<void>;
}

/**
 * Wires the program from its configuration; nothing listens yet.
 * Fails with DatabaseOpenError, after everything that was opened is closed again.
 */
export async function createService(config: Config, { logStream }: ServiceOptions = {}): Promise<Service> {
  const { settings, code } = config;
  await using opening = new AsyncDisposableStack();
  const log = await openLog({ level: settings['log.level'], stream: logStream });
  const readiness = new Readiness();
  const metrics = new Metrics({
    onOverflow: (meter, maxSeries) => log.warn({ meter, maxSeries }, 'meter has too many series'),
  });
  addProcessMetrics(metrics);
  const events = createEvents(log, metrics);

  // Opened by the first door that needs it: GraphQL over its own users needs none.
  const opened: { database?: Database } = {};
  const database = (): Database => {
    opened.database ??= opening.use(openDatabase(settings['database.url']));
    return opened.database;
  };

  // Whoever creates a user in the store, its feed tells of it.
  const storeFeed = new UserFeed();
  const storedUsers = () => announcingUserStore(database().users, storeFeed);

  const listeners = new Map<Door, Listener>();
  const listener = (door: Door, port: number, errors: ErrorFormat): FastifyInstance => {
    const created = createListener({
      door,
      host: settings.host,
      port,
      portHint: `--${door}-port or ${optionOf(`${door}.port`).env}`,
      log,
      errors,
    });
    opening.use(created);
    timeRequests(created.app, door, metrics);
    listeners.set(door, created);
    return created.app;
  };
  const isOpen = (door: Door) => settings.interfaces.includes(door);

  if (isOpen('graphql')) {
    const feed = settings['graphql.users'] === 'memory' ? new UserFeed() : storeFeed;
    const users =
      settings['graphql.users'] === 'memory'
        ? new MemoryUserCollection(feed, settings['graphql.maxUsers'])
        : new StoredUserCollection(storedUsers());
    listener('graphql', settings['graphql.port'], graphqlErrors).register(graphql, {
      schema: usersSchema(users, feed),
      path: settings['graphql.path'],
      ...graphqlLimits(settings),
      // Users are plain objects.
      compile: true,
      metrics,
    });
  }

  if (isOpen('rest')) {
    listener('rest', settings['rest.port'], restErrors).register(rest, { users: storedUsers() });
  }

  let dispatcher: Dispatcher | undefined;
  if (isOpen('webhook')) {
    const handlers = new Map([...Object.entries(contractHandlers), ...code.handlers]);
    const { inbox } = database();
    const dispatch = new Dispatcher({ inbox, handlers, log, onSettled: events.deliverySettled });
    dispatcher = dispatch;
    listener('webhook', settings['webhook.port'], webhookErrors).register(webhook, {
      inbox,
      secrets: settings['webhook.secret'] ?? [],
      handles: (event) => handlers.has(event),
      onStored(delivery) {
        events.deliveryStored(delivery);
        if (delivery.handled) dispatch.wake();
      },
    });
  }

  if (isOpen('management')) {
    const { name, version } = readPackageInfo();
    listener('management', settings['management.port'], managementErrors).register(management, {
      basePath: settings['management.basePath'],
      include: managementInclude(config),
      exclude: settings['management.exclude'],
      showValues: settings['management.showValues'],
      users: managementUsers(config),
      role: settings['management.role'],
      build: { name, artifact: name, version },
      health: new HealthRegistry([
        ...(opened.database === undefined ? [] : [databaseCheck(opened.database)]),
        ...[...code.healthChecks].map(([id, check]) => codeCheck(id, check)),
      ]),
      readiness,
      metrics,
      environment: { activeProfiles: settings.profiles, propertySources: config.sources },
      endpoints: code.endpoints,
    });
  }

  const resources = opening.move();
  let stopping: Promise<void> | undefined;

  async function stop(): Promise<void> {
    const served = readiness.accepting;
    readiness.refuse();
    const managementDoor = listeners.get('management');
    const doors = [...listeners.values()].filter((door) => door !== managementDoor);
    for (const door of doors) door.drain();
    if (served) await delay(settings['shutdown.linger']);
    const deadline = AbortSignal.timeout(STOP_DEADLINE);
    await Promise.all([...doors.map((door) => door.close(deadline)), dispatcher?.stop(deadline)]);
    // Probes see the drain to its end.
    await managementDoor?.close(deadline);
    await resources.disposeAsync();
    log.info('stopped');
  }

  const service: Service = {
    doors: Object.fromEntries([...listeners].map(([door, { app }]) => [door, app])),
    log,
    failed: opened.database?.failed ?? new AbortController().signal,
    async listen() {
      // All have ended their attempt before one failure closes them: none opens afterwards.
      const attempts = await Promise.allSettled(
        [...listeners].map(async ([door, { listen }]) => [door, await listen()] as const),
      );
      const failure = attempts.find(({ status }) => status === 'rejected');
      if (failure?.status === 'rejected') {
        await Promise.all([...listeners.values()].map((door) => door[Symbol.asyncDispose]()));
        throw failure.reason;
      }
      const urls = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []));
      await dispatcher?.start();
      readiness.accept();
      return Object.fromEntries(urls);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
    [Symbol.asyncDispose]: () => service.stop(),
  };
  return service;
}

function graphqlLimits(settings: Settings) {
  return {
    limits: {
      maxTokens: settings['graphql.maxTokens'],
      maxDepth: settings['graphql.maxDepth'],
      maxAliases: settings['graphql.maxAliases'],
      maxDirectives: settings['graphql.maxDirectives'],
      maxRootFields: settings['graphql.maxRootFields'],
    },
    maxBodyBytes: settings['graphql.maxBodyBytes'],
    maxCachedDocuments: settings['graphql.maxCachedDocuments'],
    introspection: settings['graphql.introspection'],
    suggestions: settings['graphql.suggestions'],
  };
}

/** The default include list covers the endpoints that the user registered; a list of the user's own is taken as it is. */
function managementInclude({ settings, code }: Config): readonly string[] {
  const include = settings['management.include'];
  const isDefault = include === optionOf('management.include').default;
  return isDefault ? [...include, ...code.endpoints.map(({ id }) => id)] : include;
}

/** The users of the management door: the configured one has the required role (contract 5). */
function managementUsers({ settings, code }: Config) {
  const { 'management.user': user, 'management.password': password, 'management.role': role } = settings;
  const configured =
    user === undefined || password === undefined
      ? []
      : [{ user, password, roles: role === undefined ? [] : [role] }];
  return [...configured, ...code.users];
}

function databaseCheck(database: Database) {
  return {
    name: 'db',
    async check() {
      await database.ping();
      return { status: 'UP' } as const;
    },
  };
}
