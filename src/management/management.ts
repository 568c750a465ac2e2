import type { Reply } from '@portico/transport';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { takenEndpoints } from '../config/options/endpoint-id.ts';
import { defaultsOf } from '../config/options/options.ts';
import { environmentProperties } from '../config/sources.ts';
import { prefersHtml } from '../core/negotiation.ts';
import { KnownSecrets } from '../core/redaction.ts';
import { type Linked, linksPage } from '../http/pages.ts';
import { HealthRegistry, Readiness } from '../telemetry/health.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { observeRuntime } from '../telemetry/runtime.ts';
import { auditEventsEndpoint, auditedRoutes } from './audit.ts';
import { readEndpoints } from './config.ts';
import { addConsole, servesConsole } from './console/console.ts';
import { type CustomEndpoint, customEndpoint } from './endpoints/custom.ts';
import { deliveriesEndpoint } from './endpoints/deliveries.ts';
import { cpuProfileEndpoint, heapDumpEndpoint, threadDumpEndpoint } from './endpoints/dumps.ts';
import { addProbes, healthEndpoint, healthView, PROBE_PATHS } from './endpoints/health.ts';
import { type Build, infoEndpoint, nearestBuild } from './endpoints/info.ts';
import { loggersEndpoint } from './endpoints/loggers.ts';
import { metricsEndpoint } from './endpoints/metrics.ts';
import { prometheusEndpoint } from './endpoints/prometheus.ts';
import { configPropsEndpoint, type Environment, envEndpoint } from './endpoints/properties.ts';
import {
  historyEndpoint,
  httpExchangesEndpoint,
  logTailEndpoint,
  requestsEndpoint,
} from './endpoints/recent.ts';
import { eventLoopEndpoint, mappingsEndpoint, shutdownEndpoint } from './endpoints/runtime.ts';
import { webhookEndpoints } from './endpoints/webhook-endpoints.ts';
import { type Exposed, exposedEndpoints, guard } from './guard.ts';
import {
  jsonTextReply,
  ManagementOptionsError,
  MEDIA_TYPES,
  methodNotAllowed,
  NEGOTIATED_HEADERS,
  NOT_FOUND,
  refuse,
} from './management-errors.ts';
import { valueShower } from './masking.ts';
import { ApiDocuments, docsEndpoint, openApiEndpoint, originOf } from './openapi/docs.ts';
import {
  addOperations,
  addRoutes,
  answerBeforeBody,
  type ManagementEndpoint,
  type Operation,
  prepareScope,
} from './operations.ts';
import type { DoorOptions, ManagementOptions } from './options.ts';
import { registerWithAdmin } from './spring-boot-admin.ts';

type HealthView = ReturnType<typeof healthView>;

/**
 * The management door (CONTRACT.md#management-endpoints) as a Fastify plugin. Everything it adds stays in two
 * encapsulated scopes: the base path, guarded if users are configured, and the open probes. Fails with
 * HealthCheckNameError, ManagementOptionsError, UserNameError, EmptySecretError or PasswordHashError for
 * invalid options.
 */
export const management: FastifyPluginAsync<ManagementOptions> = async (app, given) => {
  const options = withDefaults(given, app);
  const prefix = basePrefix(options.basePath);
  checkCustomEndpoints(options.endpoints, prefix);
  const health = healthView(options);
  const documents = new ApiDocuments(options, app.prefix + prefix);
  const endpoints = allEndpoints(options, health, documents);
  const guardHook = guard(options, app.log);
  if (options.springBootAdmin !== undefined) {
    registerWithAdmin(app, options.springBootAdmin, {
      path: app.prefix + prefix,
      name: options.build.artifact,
      metrics: options.metrics,
    });
  }

  app.register(async (scope) => {
    prepareScope(scope);
    addProbes(scope, health);
  });
  app.register(
    async (scope) => {
      prepareScope(scope);
      // A hook also sees requests for unknown paths.
      if (guardHook !== undefined) scope.addHook('onRequest', guardHook);
      answerUnknownPaths(scope, prefix);
      const exposed = exposedEndpoints(scope, endpoints, options);
      documents.exposed = exposed;
      // At `/`, discovery would replace the application's own start page.
      const pages = servesConsole(options) ? [CONSOLE_LINK] : [];
      if (prefix !== '') addDiscovery(scope, exposed, options.build, pages);
      for (const { id, routes } of exposed) addRoutes(scope, auditedRoutes(routes, id, options.audit));
      if (pages.length > 0) addConsole(scope, endpoints, options);
    },
    { prefix },
  );
};

/** Listed on the page for browsers, but not in JSON. */
const CONSOLE_LINK = {
  path: '/console',
  about: 'The console: the service at a glance, and actions for people.',
};

const BASE_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/;

/** The base path as a route prefix: without a trailing slash, empty for `/`. */
function basePrefix(basePath: string): string {
  const prefix = basePath.replace(/\/+$/, '');
  if (basePath === '' || (prefix !== '' && !BASE_PATH.test(prefix))) {
    throw new ManagementOptionsError(
      `The base path ${JSON.stringify(basePath)} is not a plain path. Use one like /actuator, or /.`,
    );
  }
  return prefix;
}

/** Refuses custom endpoints that cannot be reached, or that share an id. */
function checkCustomEndpoints(endpoints: readonly CustomEndpoint[], prefix: string): void {
  const probes = prefix === '' ? PROBE_PATHS.map((path) => path.slice(1)) : [];
  // Copied field by field, because an instance of a class has its operations on its prototype.
  const value = endpoints.map(({ id, path, query, read, write, delete: remove }) => {
    return { id, path, query, read, write, delete: remove };
  });
  const problems: string[] = [];
  readEndpoints({ value, path: 'endpoints' }, problems, [...takenEndpoints, ...probes]);
  if (problems.length > 0) throw new ManagementOptionsError(problems.join('\n'));
}

/** Every endpoint for which the options provide data, exposed or not. */
function allEndpoints(
  options: DoorOptions,
  health: HealthView,
  documents: ApiDocuments,
): readonly ManagementEndpoint[] {
  const { build, configuration, loggers, exchanges, auditEvents, deliveries, mappings, shutDown, secrets } =
    options;
  const { history, logTail, requests } = options;
  const show = valueShower(options.showValues, secrets);
  return [
    healthEndpoint(health),
    infoEndpoint(options),
    metricsEndpoint(options.metrics),
    prometheusEndpoint(options.metrics),
    envEndpoint(options.environment, show),
    configuration && configPropsEndpoint(build.artifact, configuration, show),
    mappings && mappingsEndpoint(build.artifact, mappings),
    loggers && loggersEndpoint(loggers),
    exchanges && httpExchangesEndpoint(exchanges, secrets),
    auditEvents && auditEventsEndpoint(auditEvents, options),
    deliveries && deliveriesEndpoint(deliveries, options),
    options.webhookEndpoints && webhookEndpoints(options.webhookEndpoints, options),
    history && historyEndpoint(history),
    logTail && logTailEndpoint(logTail),
    requests && requestsEndpoint(requests),
    eventLoopEndpoint(),
    threadDumpEndpoint(),
    heapDumpEndpoint(),
    cpuProfileEndpoint(),
    openApiEndpoint(documents),
    docsEndpoint(documents),
    shutDown && shutdownEndpoint(shutDown),
    ...options.endpoints.map((endpoint) => customEndpoint(endpoint)),
  ].filter((endpoint) => endpoint !== undefined);
}

const METHOD_NOT_ALLOWED = methodNotAllowed('GET, HEAD, OPTIONS');

function answerUnknownPaths(scope: FastifyInstance, prefix: string): void {
  try {
    scope.setNotFoundHandler(answer);
  } catch (cause) {
    throw new ManagementOptionsError(
      'With the base path / every unknown path belongs to the management door, but the application answers them itself. Choose another base path.',
      { cause },
    );
  }
  // Otherwise a catch-all route of the application, such as one for its web pages, would win over a not-found
  // handler.
  if (prefix !== '') answerBeforeBody(scope, '/*', scope.supportedMethods, answer);
}

function answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Methods for which Fastify has no routes arrive here even for a known path.
  const [path = ''] = request.url.split('?', 1);
  const known = !path.includes('*') && request.server.hasRoute({ method: 'GET', url: path });
  return refuse(known ? METHOD_NOT_ALLOWED : NOT_FOUND, request, reply);
}

/**
 * The options with their defaults: the four standard endpoints and those of `endpoints` at /actuator, not
 * secured, no values shown, the passwords of users redacted; the build of the nearest package.json, no health
 * checks, meters of the process, the environment; ready while the application listens. Everything opened here
 * closes with `app`.
 */
function withDefaults(options: ManagementOptions, app: FastifyInstance): DoorOptions {
  const { endpoints = [], users = [] } = options;
  const defaults = defaultsOf('management');
  return {
    ...options,
    basePath: options.basePath ?? defaults.basePath,
    include: options.include ?? [...defaults.include, ...endpoints.map(({ id }) => id)],
    exclude: options.exclude ?? defaults.exclude,
    showValues: options.showValues ?? defaults.showValues,
    secrets: options.secrets ?? new KnownSecrets(users.map(({ password }) => password)),
    users,
    role: options.role,
    maxFailedLogins: options.maxFailedLogins ?? defaults.maxFailedLogins,
    build: options.build ?? nearestBuild(),
    health: options.health ?? new HealthRegistry([]),
    readiness: options.readiness ?? readinessOf(app),
    metrics: options.metrics ?? processMetrics(app),
    environment: options.environment ?? processEnvironment(process.env),
    endpoints,
  };
}

function readinessOf(app: FastifyInstance): Readiness {
  const readiness = new Readiness();
  app.addHook('onListen', async () => readiness.accept());
  app.addHook('preClose', async () => readiness.refuse());
  return readiness;
}

function processMetrics(app: FastifyInstance): Metrics {
  const metrics = new Metrics({ log: app.log });
  const runtime = observeRuntime(metrics);
  app.addHook('onClose', async () => {
    runtime[Symbol.dispose]();
    metrics[Symbol.dispose]();
  });
  return metrics;
}

function processEnvironment(env: NodeJS.ProcessEnv): Environment {
  return {
    activeProfiles: env.NODE_ENV ? [env.NODE_ENV] : [],
    propertySources: [{ name: 'systemEnvironment', properties: environmentProperties(env) }],
  };
}

const ORIGIN = '{origin}';

/** Adds the base path: absolute links to everything exposed. The page for browsers lists `pages` too. */
function addDiscovery(
  scope: FastifyInstance,
  endpoints: readonly Exposed[],
  build: Build,
  pages: readonly PageLink[] = [],
): void {
  const pieces = linksOf(scope.prefix, endpoints).split(ORIGIN);
  const page = discoveryPage(scope.prefix, endpoints, build, pages);
  const get: Operation = (ctx) => {
    if (prefersHtml(ctx.headers.accept, MEDIA_TYPES)) return page;
    return { ...jsonTextReply(ctx, pieces.join(originOf(ctx.request))), headers: NEGOTIATED_HEADERS };
  };
  addOperations(scope, '', { get, fast: false });
}

function linksOf(basePath: string, endpoints: readonly Exposed[]): string {
  const link = (path: string) => ({ href: `${ORIGIN}${basePath}${path}`, templated: isTemplate(path) });
  const links = endpoints.flatMap(({ routes }) =>
    Object.keys(routes).map((path) => [linkName(path), link(path)]),
  );
  return JSON.stringify({ _links: { self: link(''), ...Object.fromEntries(links) } });
}

/** Named as in Actuator: `/env/{toMatch}` is `env-toMatch`, `/deliveries/counts` is `deliveries-counts`. */
function linkName(path: string): string {
  return path
    .slice(1)
    .replace(/\/\{\*?(.*)\}$/, '-$1')
    .replaceAll('/', '-');
}

interface PageLink {
  readonly path: string;
  readonly about: string;
}

/** The page at the base path for browsers: each endpoint with a line about it. */
function discoveryPage(
  prefix: string,
  endpoints: readonly Exposed[],
  { name, version }: Build,
  pages: readonly PageLink[] = [],
): Reply {
  // Relative to the page's own URL, so that links also work behind a proxy that adds a prefix.
  const base = `.${prefix.slice(prefix.lastIndexOf('/'))}`;
  const page = linksPage(
    `${name} ${version}`,
    'Management endpoints. Programs get these links as JSON from the same address.',
    [
      ...pages.map(({ path, about }) => ({ paths: [{ text: prefix + path, href: base + path }], about })),
      ...endpoints.map((endpoint) => linked(endpoint, base, prefix)),
    ],
  );
  return { ...page, headers: { ...NEGOTIATED_HEADERS, ...page.headers } };
}

function isTemplate(path: string): boolean {
  return path.includes('{');
}

function linked({ about, routes }: Exposed, base: string, prefix: string): Linked {
  const paths = Object.entries(routes).map(([path, { get }]) => {
    const text = prefix + path;
    if (get === undefined) return { text: `POST ${text}` };
    return { text, href: isTemplate(path) ? undefined : base + path };
  });
  return { paths, about };
}
