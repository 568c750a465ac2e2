import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { whenReady } from '../../core/maybe-promise.ts';
import type { Backlog, Inbox } from '../../inbox/inbox.ts';
import type { HistorySource } from '../../observability/history/history-source.ts';
import type { Statistic } from '../../observability/metrics/meter.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import type { Traffic } from '../../observability/metrics/traffic.ts';

/** Sampling interval of the delay in milliseconds. */
const RESOLUTION = 20;
/** Counting a long backlog is slow: of the time between two counts it takes at most this share. */
const BACKLOG_SHARE = 0.005;

/** What the history of a service is made of. */
export interface HistoryParts {
  readonly metrics: Metrics;
  readonly traffic: ReadonlyMap<string, Traffic>;
  /** Of the webhook door, if it is open. */
  readonly inbox: Pick<Inbox, 'backlog'> | undefined;
}

/** The columns of the history; disposing of it ends the measurement of the event loop. */
export function historySources({ metrics, traffic, inbox }: HistoryParts) {
  const doors = [...traffic].flatMap(([door, each]) => trafficSources(door, each));
  const loop = eventLoopSources();
  const sources: readonly HistorySource[] = [
    ...doors,
    ...loop.sources,
    ...processSources(),
    ...databaseSources(metrics),
    ...(inbox === undefined ? [] : inboxSources(metrics, inbox)),
  ];
  return { sources, [Symbol.dispose]: () => loop[Symbol.dispose]() };
}

function trafficSources(door: string, traffic: Traffic): readonly HistorySource[] {
  const { durations: histogram } = traffic;
  const replies = () => traffic.replies;
  return [
    { kind: 'rate', name: `${door}.requests`, unit: '1/s', read: replies },
    { kind: 'ratio', name: `${door}.errors`, unit: 'share', read: () => traffic.errors, per: replies },
    { kind: 'percentile', name: `${door}.p50`, unit: 'ms', histogram, share: 0.5 },
    { kind: 'percentile', name: `${door}.p99`, unit: 'ms', histogram, share: 0.99 },
  ];
}

function eventLoopSources() {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  // Each of the three resolutions reads it, all at the same tick.
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
  const sources: readonly HistorySource[] = [
    { kind: 'peak', name: 'eventloop.p99', unit: 'ms', read: reading(() => read.p99) },
    { kind: 'peak', name: 'eventloop.max', unit: 'ms', read: reading(() => read.max) },
    { kind: 'mean', name: 'eventloop.utilization', unit: 'share', read: reading(() => busy) },
  ];
  return { sources, [Symbol.dispose]: () => delay.disable() };
}

/** The histogram holds the time between two samples, in nanoseconds. */
function late(nanoseconds: number): number {
  const milliseconds = nanoseconds / 1e6 - RESOLUTION;
  return milliseconds > 0 && milliseconds < 1e9 ? milliseconds : 0;
}

function processSources(): readonly HistorySource[] {
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

function databaseSources(metrics: Metrics): readonly HistorySource[] {
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

function inboxSources(metrics: Metrics, inbox: Pick<Inbox, 'backlog'>): readonly HistorySource[] {
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
  const value = (name: string, unit: string, of: (backlog: Backlog) => number): HistorySource => ({
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
  ];
}

/** The sum of a statistic over all series of a meter; 0 before it is there. */
function total(metrics: Metrics, name: string, statistic: Statistic): () => number {
  return () => {
    let sum = 0;
    for (const series of metrics.meter(name)?.series() ?? []) {
      for (const each of series.measure()) if (each.statistic === statistic) sum += each.value;
    }
    return sum;
  };
}
