import { storedTraceFields } from '../core/trace.ts';
import type { EventFeed, UserEvent } from '../relations/events.ts';
import type { SourceSettings } from '../signatures/sources.ts';
import { standard } from '../signatures/standard.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { HandlerSpec } from './config.ts';
import {
  type ClaimedJob,
  type DeliveryFacts,
  eventFields,
  type HandlerLog,
  type NewDelivery,
} from './delivery.ts';
import { continueTrace, type TraceTarget } from './dispatch/attempt.ts';
import { Dispatcher } from './dispatch/dispatcher.ts';
import { Heartbeat } from './dispatch/leases.ts';
import { retention } from './dispatch/retention.ts';
import type { Target } from './dispatch/target.ts';
import { handlerTarget, planOfReplay } from './event-names.ts';
import type { Events } from './events.ts';
import { lookupSlots, Network } from './forward/addresses.ts';
import { type ForwardSettings, forwardTarget } from './forward/forward.ts';
import { createPoster } from './forward/poster.ts';
import type { RecordedChanges } from './forward/relay.ts';
import { addInboxMetrics } from './health.ts';
import type { Appended, Inbox } from './inbox.ts';
import { isolatedTarget, ThreadPool } from './isolate/isolated.ts';
import { createJobPlan, guardedTarget, hasTarget } from './job-plan.ts';
import type { ReplayPlan } from './operations.ts';
import {
  ALERT_TARGET,
  createProducers,
  type ProducerSettings,
  type PublishChanges,
  type PublishOwn,
} from './producers.ts';

/** What runs deliveries, and what stores them without a sender. */
export interface WorkSettings extends ProducerSettings {
  /** Handlers by event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
}

/** The configured numbers, under the names of the options `webhook.*`, which have their units and defaults. */
interface WorkNumbers {
  readonly attempts: number;
  readonly timeout: number;
  readonly concurrency: number;
  readonly backoff: number;
  readonly maxBackoff: number;
  readonly lease: number;
  readonly handlerGrace: number;
  readonly maxBodyBytes: number;
  readonly retention: number;
  readonly retentionBytes: number;
  readonly dedupDays: number;
  readonly keptAttempts: number;
}

/** What further targets are made with. */
export interface TargetTools {
  /** Another network, so that slow look-ups of its hosts hold up no other target. */
  network(): Network;
  readonly numbers: Pick<WorkNumbers, 'keptAttempts' | 'maxBodyBytes'>;
  readonly trace: TraceTarget;
  /** Disposes of a resource when the work has stopped; returns it. */
  use<T extends Disposable>(resource: T): T;
}

interface WorkOptions extends WorkSettings {
  readonly inbox: Inbox;
  readonly numbers: WorkNumbers;
  /** The changes of the database's users, for forward addresses that subscribe to them. */
  readonly userFeed?: EventFeed<UserEvent> | undefined;
  /** The changes of relations, for addresses and handlers that want them. */
  readonly changes?: RecordedChanges | undefined;
  /** Options of the threads of isolated handlers; without it no handler is isolated. */
  readonly isolation?: Omit<ConstructorParameters<typeof ThreadPool>[0], 'log'> | undefined;
  /** The log; each delivery logs to a child of it. */
  readonly log: HandlerLog & { child(bindings: Record<string, unknown>): HandlerLog };
  readonly events: Events;
  /** The registry for the meters of the backlog and the clock; default none. */
  readonly metrics?: Metrics | undefined;
  /** Publishes enqueued events for tenants, and the changes of relations that they get. */
  readonly publish?: PublishOwn | undefined;
  readonly publishChanges?: PublishChanges | undefined;
  /** Makes further targets, beside handlers and forward addresses. */
  readonly further?: ((tools: TargetTools) => readonly Target[]) | undefined;
  /** Continues the traces of deliveries; by default without recording spans. */
  readonly traceTarget?: TraceTarget | undefined;
}

/**
 * The work of an inbox: stores deliveries with their jobs, runs the jobs, and removes old deliveries. The
 * inbox must stay open until the work has stopped.
 */
export interface Work {
  /**
   * Stores a delivery with the jobs that its event and the rules of the targets give it. `body` is the parsed
   * body. Resolves once the delivery is durable or recognised as a duplicate.
   */
  store(facts: DeliveryFacts & Omit<NewDelivery, 'jobs'>, body: unknown): Promise<Appended>;
  /** Stores deliveries whose jobs are decided, as `Inbox.appendAll` does. */
  appendAll(deliveries: readonly NewDelivery[]): ReturnType<Inbox['appendAll']>;
  /** Starts the background work. Resolves once it will miss no later change of a user. */
  start(): Promise<void>;
  /** The number of running attempts by target: `handler:<event>`, `forward:<name>`. */
  running(): ReadonlyMap<string, number>;
  /** The share of the process's time for handling, below 1 while acknowledging needs the rest. */
  share(): number;
  /** Records a crash for the running attempts. For the listener for uncaught errors. */
  crash(error: unknown): Promise<void>;
  /** Waits for running attempts; `deadline` aborts them and releases their jobs. */
  stop(deadline: AbortSignal): Promise<void>;
}

const DAY = 86_400_000;

/** Creates the work of an inbox, which does nothing until it starts. Throws UnusableSecretError. */
export function createWork(options: WorkOptions): Work {
  const { inbox, handlers, forwards, numbers, log, events, metrics } = options;
  if (metrics !== undefined) addInboxMetrics(metrics, inbox);
  using building = new DisposableStack();
  const { targets, networks, threads } = createTargets(options, building);
  events.begin(targets.map(({ name }) => name));
  const dispatcher = new Dispatcher({ inbox, targets, lease: numbers.lease, events });
  const { task: heartbeat } = new Heartbeat({
    inbox,
    targets: targets.map(({ name }) => name),
    grace: numbers.handlerGrace,
    onExpired(jobs) {
      for (const [target, count] of jobs) {
        const hint = 'put the handler or forward address back and replay';
        log.error({ target, jobs: count, hint }, 'orphaned jobs expired');
      }
    },
    onError: events.storeFailed,
  });
  const removal = retention({
    inbox,
    maxAge: numbers.retention * DAY,
    maxBytes: numbers.retentionBytes,
    dedupAge: numbers.dedupDays * DAY,
    onPruned: (removed) => log.info({ removed }, 'old deliveries removed'),
    onError: events.storeFailed,
  });
  const plan = createJobPlan(handlers, forwards, events.ruleFailed, events.ruleIgnored);
  const onAppended = (delivery: NewDelivery, appended: Appended) => {
    const { jobs } = delivery;
    const filtered = jobs.length === 0 && hasTarget(delivery, handlers, forwards);
    events.appended(delivery, appended, filtered);
  };
  const producers = createProducers({
    ...options,
    plan,
    onAppended(delivery, appended) {
      onAppended(delivery, appended);
      for (const { target } of delivery.jobs) dispatcher.wake(target);
    },
    onError: events.storeFailed,
  });

  const posters = building.move();
  return {
    async store(facts, body) {
      const delivery = { ...facts, jobs: plan(facts, body) };
      const appended = await dispatcher.append(delivery);
      onAppended(delivery, appended);
      return appended;
    },
    async appendAll(deliveries) {
      const results = await dispatcher.appendAll(deliveries);
      for (const [i, delivery] of deliveries.entries()) {
        const result = results[i];
        if (result !== undefined && !(result instanceof Error)) onAppended(delivery, result.appended);
      }
      return results;
    },
    start() {
      dispatcher.start();
      heartbeat.start();
      removal.start();
      return producers.start();
    },
    running: () => dispatcher.running,
    share: () => dispatcher.share,
    crash: (error) => dispatcher.crash(error),
    async stop(deadline) {
      using _ = posters;
      // Attempts without a connection are released at once, so that an unreachable host does not delay the
      // stop.
      for (const network of networks) network[Symbol.dispose]();
      await Promise.all([dispatcher.stop(deadline), heartbeat.stop(), removal.stop(), producers.stop()]);
      await threads?.[Symbol.asyncDispose]();
    },
  };
}

/** Creates the targets of handlers and forward addresses. `building` gets what the end of the work closes. */
function createTargets(
  { handlers, isolation, forwards, deadAlert, numbers, log, traceTarget, further }: WorkOptions,
  building: DisposableStack,
) {
  const trace = traceTarget ?? continueTrace;
  const defaults = {
    concurrency: numbers.concurrency,
    timeout: numbers.timeout,
    maxAttempts: numbers.attempts,
    keptAttempts: numbers.keptAttempts,
    backoff: { base: numbers.backoff, cap: numbers.maxBackoff },
  };
  const network = building.use(new Network());
  const networks = [network];
  const threads = isolation && new ThreadPool({ ...isolation, log });
  const onFiltered = ({ target, delivery }: ClaimedJob) =>
    log.info(
      { delivery: delivery.id, ...eventFields(delivery), target },
      'delivery filtered before its attempt',
    );
  const forwardTo = (forward: ForwardSettings): Target => {
    const { secrets, allowPrivate } = forward;
    const signature = standard({ headerPrefix: 'webhook', tolerance: 0 });
    const sign = secrets.length === 0 ? undefined : signature.signer(secrets);
    const poster = building.use(createPoster({ network, allowPrivate }));
    const target = forwardTarget(forward, defaults, sign, poster, {
      maxBodyBytes: numbers.maxBodyBytes,
      onPause: (status, wait) => log.warn({ forward: forward.name, status, wait }, 'forward address paused'),
    });
    return guardedTarget(trace(target, { url: new URL(forward.url) }), forward, onFiltered);
  };
  const targets = [
    ...[...handlers].map(([event, spec]) => {
      const target = handlerTarget(event, spec, defaults, ({ delivery, attempt }) => {
        const trace = storedTraceFields(delivery.trace);
        return log.child({ delivery: delivery.id, ...eventFields(delivery), attempt, ...trace });
      });
      const runs = threads !== undefined && spec.isolate ? isolatedTarget(target, event, threads) : target;
      return guardedTarget(trace(runs, {}), spec, onFiltered, event);
    }),
    ...forwards.map(forwardTo),
    ...(deadAlert.address === undefined ? [] : [{ ...forwardTo(deadAlert.address), name: ALERT_TARGET }]),
    ...(further?.({
      network() {
        // The look-ups of both must leave threads for the rest of the process.
        const own = building.use(new Network({ slots: Math.max(1, Math.floor(lookupSlots() / 2)) }));
        networks.push(own);
        return own;
      },
      numbers,
      trace,
      use: (resource) => building.use(resource),
    }) ?? []),
  ];
  return { targets, networks, threads };
}

/** The plan by which a replay decides the jobs of a stored delivery. */
export function createReplayPlan({
  handlers,
  forwards,
  sources,
}: Pick<WorkSettings, 'handlers' | 'forwards'> & {
  readonly sources: readonly SourceSettings[];
}): ReplayPlan {
  return planOfReplay(createJobPlan(handlers, forwards), sources);
}
