import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { HttpProblem } from '@portico/transport';
import { type DoorName, settingsOf } from '../config/options/options.ts';
import { socketPathOf } from '../core/addresses.ts';
import { describeError } from '../core/errors.ts';
import { valueAt } from '../core/json.ts';
import { whenReady } from '../core/scheduler.ts';
import { createSender, type Receiver } from '../http/client.ts';
import { sentName } from '../inbox/event-names.ts';
import type { Backlog, Inbox } from '../inbox/inbox.ts';
import type { ConsoleView, TestSender } from '../management/console/console-view.ts';
import { isExposed } from '../management/guard.ts';
import { hasRules } from '../relations/relation.ts';
import { token, UnsignableError, UnusableSecretError } from '../signatures/hmac.ts';
import { buildBody, signDelivery } from '../signatures/outgoing.ts';
import { samplesOf } from '../signatures/samples.ts';
import type { Signer } from '../signatures/schemes.ts';
import { defaultLayout, type SourceLayout, type SourceSettings } from '../signatures/sources.ts';
import { type Database, parseDatabaseUrl } from '../sql/database.ts';
import { History, type Series } from '../telemetry/history.ts';
import type { Statistic, Tag } from '../telemetry/meters.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { RequestStats } from '../telemetry/request-stats.ts';
import type { AppContext } from './context.ts';
import { accessOf, closedInConsole, includeList, ruledInConsole } from './door-security.ts';
import type { Config } from './load-config.ts';
import { webhookSettings } from './webhook-door.ts';

type TestAnswer = Awaited<ReturnType<TestSender['send']>>;

type ConsoleDoor = ReturnType<NonNullable<ConsoleView['doors']>>[number];

const ENGINES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const;

/** The history of the doors opened so far; it ends with the service. */
export function openHistory({ metrics, doors, openedDatabase, onStop, config }: AppContext): History {
  const requests = new Map([...doors].map(([door, each]) => [door, each.stats]));
  const inbox = config.settings.interfaces.includes('webhook') ? openedDatabase()?.inbox : undefined;
  const { sources } = onStop(historySeries({ metrics, requests, inbox }));
  return onStop(new History(sources));
}

/** What the console shows besides the endpoints. `secrets` are those of an open /webhook. */
export function consoleView(
  context: AppContext,
  secrets: (() => readonly string[]) | undefined,
): ConsoleView {
  const { config, openedDatabase } = context;
  const { settings } = config;
  const database = openedDatabase();
  return {
    localOnly: socketPathOf(settings['management.port']) !== undefined,
    hosts: [settings.host, ...settings['http.hosts']],
    closed: closedInConsole(config),
    role: settings['management.consoleRole'],
    doors: () => consoleDoors(context),
    database: database && ENGINES[parseDatabaseUrl(settings['database.url'])?.engine ?? 'sqlite'],
    users: database?.users,
    relations: database && consoleRelations(context, database),
    ruled: config.relations.some(hasRules) ? config.relations : undefined,
    processes: database?.processes?.bind(database),
    sender:
      secrets &&
      createTestSender({
        sources: webhookSettings(config).sources,
        secrets,
        receiver: (path) => receiverOf(context, path),
      }),
  };
}

/** The relations, with the bounds that REST has; undefined without any. */
function consoleRelations(
  { config, relations, relationFeed, api }: AppContext,
  { users }: Database,
): ConsoleView['relations'] {
  if (relations.size === 0) return undefined;
  const { maxImportBytes, maxStreams } = settingsOf(config.settings, 'rest');
  const stores = [...relations.values(), ...(users.rows === undefined ? [] : [users.rows])];
  return {
    all: stores.map(({ relation }) => relation),
    closed: ruledInConsole(config),
    areFollowed: relationFeed !== undefined,
    verdicts: config.relations.some(hasRules)
      ? async (name, key, claims) => {
          const store = relations.get(name);
          const { rulesOf } = await import('../access/row-access.ts');
          const { scopesReader } = await import('../access/jwt.ts');
          const { verdictsOn } = await import('../relations/rules/row-verdicts.ts');
          const rules = rulesOf(new Map(stores.map(({ relation }) => [relation.name, relation])), api);
          if (store === undefined || rules === undefined) return undefined;
          const scopes = scopesReader(config.settings['api.jwt.scopesClaim'])(claims ?? {});
          const caller = claims && ({ kind: 'jwt', name: String(claims.sub ?? ''), scopes, claims } as const);
          return verdictsOn(store, key, rules, caller);
        }
      : undefined,
    rows: async (scope) => {
      const { everyRow } = await import('../rest/relations/row-routes.ts');
      await scope.register(everyRow, {
        users,
        stores: relations,
        feed: relationFeed,
        maxImportBytes,
        maxStreams,
      });
    },
  };
}

/** The doors with the addresses that the start prints. */
function consoleDoors(context: AppContext): readonly ConsoleDoor[] {
  const urls = [...context.doors.keys()].map((door) => [door, urlOf(context, door)] as const);
  const addresses = doorAddresses(
    Object.fromEntries(urls.filter(([, url]) => url !== undefined)),
    context.config,
  );
  return [...addresses].map(([name, url]) => {
    return { name, url, page: name !== 'webhook' && socketPathOf(url) === undefined };
  });
}

/** The base URL of a door on this machine, or its Unix socket; undefined before it listens. */
function urlOf({ doors, config }: AppContext, door: DoorName): string | undefined {
  const address = doors.get(door)?.app.server.address();
  if (address === null || address === undefined) return undefined;
  if (typeof address === 'string') return `unix:${address}`;
  const scheme = config.settings['tls.cert'] === undefined ? 'http' : 'https';
  const { address: host, port } = address;
  if (host === '0.0.0.0' || host === '::') return `${scheme}://127.0.0.1:${port}`;
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The webhook door at a path, as this process reaches it; undefined before the door listens. */
function receiverOf(context: AppContext, path: string): Receiver | undefined {
  const url = urlOf(context, 'webhook');
  if (url === undefined) return undefined;
  const socketPath = socketPathOf(url);
  if (socketPath !== undefined) return { url: new URL(`http://localhost${path}`), socketPath };
  const file = context.config.settings['tls.cert'];
  const receiver = { url: new URL(url + path) };
  // The certificate names no loopback address, so it is pinned. It may change, so it is read each time.
  return file === undefined ? receiver : { ...receiver, certificate: readFileSync(file, 'utf8') };
}

/** The address of the console, derived from those of the doors; undefined if it is not served. */
export function consoleAddress(addresses: ReadonlyMap<DoorName, string>, config: Config): string | undefined {
  const { settings } = config;
  const exclude = settings['management.exclude'];
  const rules = { include: includeList(config), exclude, access: accessOf(settings) };
  const base = addresses.get('management');
  // No browser can open a Unix socket.
  return base === undefined || socketPathOf(base) !== undefined || !isExposed('console', rules)
    ? undefined
    : `${base.replace(/\/$/, '')}/console`;
}

/** Sampling interval of the event loop's delay, in milliseconds. */
const RESOLUTION = 20;
/** Counting a long backlog is slow: it takes at most this share of the time. */
const BACKLOG_SHARE = 0.005;

/** The sources of a service's history. */
interface HistoryParts {
  readonly metrics: Metrics;
  /** The records of the doors' requests. */
  readonly requests: ReadonlyMap<string, RequestStats>;
  /** The inbox of the webhook door, if that is open. */
  readonly inbox: Pick<Inbox, 'backlog'> | undefined;
}

/** The columns of the history. Disposing of it stops measuring the event loop. */
export function historySeries({ metrics, requests, inbox }: HistoryParts) {
  const doors = [...requests].flatMap(([door, stats]) => requestSeries(door, stats));
  const loop = eventLoopSeries();
  const sources: readonly Series[] = [
    ...doors,
    ...loop.sources,
    ...processSeries(),
    ...databaseSeries(metrics),
    ...(inbox === undefined ? [] : inboxSeries(metrics, inbox)),
  ];
  return { sources, [Symbol.dispose]: () => loop[Symbol.dispose]() };
}

function requestSeries(door: string, stats: RequestStats): readonly Series[] {
  const { durations: histogram } = stats;
  const replies = () => stats.replies;
  return [
    { kind: 'rate', name: `${door}.requests`, unit: '1/s', read: replies },
    { kind: 'ratio', name: `${door}.errors`, unit: 'share', read: () => stats.errors, per: replies },
    { kind: 'percentile', name: `${door}.p50`, unit: 'ms', histogram, share: 0.5 },
    { kind: 'percentile', name: `${door}.p99`, unit: 'ms', histogram, share: 0.99 },
  ];
}

function eventLoopSeries() {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  // The three resolutions read this at the same tick; only the first read measures.
  let read = { p99: 0, max: 0 };
  let before = performance.eventLoopUtilization();
  let busy = 0;
  let at = Number.NEGATIVE_INFINITY;
  const refresh = () => {
    if (performance.now() - at < 500) return;
    at = performance.now();
    read = { p99: late(delay.percentile(99)), max: late(delay.max) };
    delay.reset();
    const now = performance.eventLoopUtilization();
    busy = performance.eventLoopUtilization(now, before).utilization;
    before = now;
  };
  const reading = (of: () => number) => () => {
    refresh();
    return of();
  };
  const sources: readonly Series[] = [
    { kind: 'peak', name: 'eventloop.p99', unit: 'ms', read: reading(() => read.p99) },
    { kind: 'peak', name: 'eventloop.max', unit: 'ms', read: reading(() => read.max) },
    { kind: 'mean', name: 'eventloop.utilization', unit: 'share', read: reading(() => busy) },
  ];
  return { sources, [Symbol.dispose]: () => delay.disable() };
}

/** The delay in milliseconds. The histogram holds the time between two samples, in nanoseconds. */
function late(nanoseconds: number): number {
  const milliseconds = nanoseconds / 1e6 - RESOLUTION;
  return milliseconds > 0 && milliseconds < 1e9 ? milliseconds : 0;
}

function processSeries(): readonly Series[] {
  return [
    {
      kind: 'rate',
      name: 'process.cpu',
      unit: 'cores',
      read: () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      },
    },
    { kind: 'mean', name: 'process.memory', unit: 'bytes', read: () => process.memoryUsage.rss() },
    { kind: 'mean', name: 'process.heap', unit: 'bytes', read: () => process.memoryUsage().heapUsed },
  ];
}

function databaseSeries(metrics: Metrics): readonly Series[] {
  const commits = total(metrics, 'database.commits', 'COUNT');
  const seconds = total(metrics, 'database.commits', 'TOTAL_TIME');
  const writes = total(metrics, 'database.writes', 'COUNT');
  return [
    { kind: 'rate', name: 'database.commits', unit: '1/s', read: commits },
    { kind: 'ratio', name: 'database.batch', unit: 'writes', read: writes, per: commits },
    {
      kind: 'ratio',
      name: 'database.commit',
      unit: 'ms',
      read: () => seconds() * 1_000,
      per: commits,
    },
  ];
}

function inboxSeries(metrics: Metrics, inbox: Pick<Inbox, 'backlog'>): readonly Series[] {
  let last: Backlog | undefined;
  let next = 0;
  const refresh = () => {
    const began = performance.now();
    if (began < next) return;
    next = Number.POSITIVE_INFINITY;
    const done = (backlog: Backlog | undefined) => {
      last = backlog;
      next = performance.now() + (performance.now() - began) / BACKLOG_SHARE;
    };
    whenReady(inbox.backlog(), done)?.catch(() => done(undefined));
  };
  const value = (name: string, unit: string, of: (backlog: Backlog) => number): Series => ({
    kind: 'peak',
    name,
    unit,
    read() {
      refresh();
      return last === undefined ? Number.NaN : of(last);
    },
  });
  return [
    {
      kind: 'rate',
      name: 'inbox.received',
      unit: '1/s',
      read: total(metrics, 'webhook.deliveries', 'COUNT'),
    },
    value('inbox.open', 'jobs', ({ open }) => open),
    value('inbox.age', 's', ({ oldestAt }) =>
      oldestAt === undefined ? 0 : Math.max(0, Date.now() - oldestAt) / 1_000,
    ),
    value('inbox.dead', 'jobs', ({ dead }) => dead),
    ...attemptSeries(metrics),
  ];
}

/** The outcomes of attempts that the history has. */
const OUTCOMES = ['done', 'retry', 'dead', 'crashed'] as const;
/** Maximum number of targets that the history has, in the order of the configuration: each is a column. */
const MAX_TARGETS = 40;

/** Attempts by outcome, and by target. The targets have their meters before the first attempt. */
function attemptSeries(metrics: Metrics): readonly Series[] {
  const series = (name: string, tag: Tag): Series => {
    return { kind: 'rate', name, unit: '1/s', read: total(metrics, ATTEMPTS, 'COUNT', tag) };
  };
  const tags = Array.from(metrics.meter(ATTEMPTS)?.series() ?? [], (each) => each.tags).flat();
  const targets = new Set(tags.filter(({ key }) => key === 'target').map(({ value }) => value));
  return [
    ...OUTCOMES.map((value) => series(`inbox.attempts.${value}`, { key: 'outcome', value })),
    ...[...targets]
      .slice(0, MAX_TARGETS)
      .map((value) => series(`inbox.target.${value}`, { key: 'target', value })),
  ];
}

const ATTEMPTS = 'webhook.attempts';

/** The sum of a statistic over the series of a meter, or those with a tag; 0 while the meter does not exist. */
function total(metrics: Metrics, name: string, statistic: Statistic, tag?: Tag): () => number {
  return () => {
    let sum = 0;
    for (const series of metrics.meter(name)?.series() ?? []) {
      if (tag !== undefined && !series.tags.some(({ key, value }) => key === tag.key && value === tag.value))
        continue;
      for (const each of series.measure()) if (each.statistic === statistic) sum += each.value;
    }
    return sum;
  };
}

/** Time limit for the answer to a test delivery, in milliseconds. */
const TIMEOUT = 10_000;
/** Maximum shown length of the answer, in characters. */
const MAX_ANSWER = 2_000;

interface TestSenderOptions {
  readonly sources: readonly SourceSettings[];
  /** The secrets that /webhook accepts now. */
  secrets(): readonly string[];
  /** The webhook door at one of its paths; undefined before it listens. */
  receiver(path: string): Receiver | undefined;
}

/** Sends test deliveries to the service's own webhook door, signed as the chosen sender would. */
function createTestSender({ sources, secrets, receiver }: TestSenderOptions): TestSender {
  function sign(source: SourceSettings | undefined): {
    readonly layout: SourceLayout;
    readonly sign: Signer;
  } {
    if (source !== undefined) return { layout: source, sign: source.signature.signer(source.secrets) };
    const accepted = secrets();
    const signer = accepted.length === 0 ? () => ({}) : token('x-webhook-token').signer(accepted);
    return { layout: defaultLayout('token'), sign: signer };
  }

  function signed(name: string, called: string, content: Parameters<TestSender['send']>[2]) {
    const source = sources.find((each) => each.name === name);
    if (source === undefined && name !== '') throw wrong('There is no such source');
    const id = randomUUID();
    try {
      const { layout, sign: signer } = sign(source);
      const event = sentName(layout, called);
      const sample = source && samplesOf(source.scheme).find((each) => each.event === event);
      const timestamp = Math.floor(Date.now() / 1_000);
      const isRaw = 'body' in content;
      const body = isRaw
        ? rawBody(content.body, layout, id)
        : buildBody(layout, { event, data: content.data, id, sample });
      const type = isRaw && content.contentType !== '' ? { 'content-type': content.contentType } : {};
      const headers = { ...sample?.headers, ...type };
      return { body, headers: signDelivery(layout, signer, { id, event, body, timestamp, headers }) };
    } catch (error) {
      const isWrong = error instanceof UnsignableError || error instanceof UnusableSecretError;
      throw isWrong ? wrong(sentence(error.message)) : error;
    }
  }

  return {
    sources: () => [
      { name: '', scheme: secrets().length === 0 ? 'none' : 'token', event: 'new_commit', samples: [] },
      ...sources.map(({ name, scheme, events, data }) => {
        const samples = samplesOf(scheme).map(({ event, body }) => ({
          event,
          data: valueAt(body, data) ?? {},
        }));
        return { name, scheme, event: samples[0]?.event ?? [...events.keys()][0] ?? 'new_commit', samples };
      }),
    ],
    async send(source, event, content): Promise<TestAnswer> {
      const { body, headers } = signed(source, event, content);
      const door = receiver(source === '' ? '/webhook' : `/webhook/${encodeURIComponent(source)}`);
      if (door === undefined) throw wrong('The webhook door does not listen');
      using sender = createSender(door);
      try {
        const reply = await sender.post(headers, body, AbortSignal.timeout(TIMEOUT));
        return { ...reply, body: reply.body.slice(0, MAX_ANSWER) };
      } catch (cause) {
        throw new HttpProblem(502, 'TEST_DELIVERY_UNSENT', `No answer: ${describeError(cause)}`, { cause });
      }
    },
  };
}

/**
 * A whole body. If its layout has the sender's id or the time in it, it gets new ones, without which it would be a
 * duplicate, or too old.
 */
function rawBody(text: string, { dedup, sentAt, isForm }: SourceLayout, id: string): Uint8Array {
  if (dedup?.kind !== 'pointer' && sentAt === undefined) return Buffer.from(text);
  let data: unknown;
  try {
    data = isForm === true ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text);
  } catch {
    return Buffer.from(text);
  }
  const event = { kind: 'header', name: '' } as const;
  const layout = { event, data: [], dedup, ...(sentAt && { sentAt }), isForm: isForm === true };
  return buildBody(layout, { event: '', data, id });
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function wrong(message: string): HttpProblem {
  return new HttpProblem(400, 'TEST_DELIVERY', message);
}

export function doorAddresses(
  urls: Readonly<Partial<Record<DoorName, string>>>,
  { settings }: Config,
): ReadonlyMap<DoorName, string> {
  const paths: Readonly<Record<DoorName, string>> = {
    graphql: settings['graphql.path'],
    rest: '/users',
    management: settings['management.basePath'],
    webhook: '/webhook',
    portal: '/',
  };
  const doors = Object.entries(urls) as [DoorName, string][];
  // curl would read a path after a socket's path as part of it.
  return new Map(
    doors.map(([door, url]) => [door, socketPathOf(url) === undefined ? url + paths[door] : url]),
  );
}
