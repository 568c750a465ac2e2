import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import type { HandlerSpec } from '../config/schema/code.ts';
import { storedTraceFields } from '../core/trace.ts';
import { ALERT_TARGET } from '../inbox/alerts.ts';
import type { HandlerLog } from '../inbox/delivery.ts';
import { type ClaimedJob, eventFields, type NewDelivery } from '../inbox/delivery.ts';
import { continueTrace, type TraceTarget } from '../inbox/dispatch/attempt.ts';
import { Dispatcher } from '../inbox/dispatch/dispatcher.ts';
import { Heartbeat } from '../inbox/dispatch/leases.ts';
import { retention } from '../inbox/dispatch/retention.ts';
import type { Target } from '../inbox/dispatch/target.ts';
import { handlerTarget, planOfReplay } from '../inbox/event-names.ts';
import { createEvents, type Events } from '../inbox/events.ts';
import { Network } from '../inbox/forward/addresses.ts';
import { createPoster, type ForwardSettings, forwardTarget } from '../inbox/forward/forward.ts';
import { addBacklogMetrics, addClockMetrics } from '../inbox/health.ts';
import type { Appended, Inbox } from '../inbox/inbox.ts';
import { isolatedTarget, type ThreadOptions, ThreadPool } from '../inbox/isolate/isolated.ts';
import { createJobPlan, guardedTarget, hasTarget } from '../inbox/job-plan.ts';
import type { ReplayPlan } from '../inbox/operations.ts';
import type { UserEventFeed } from '../relations/events.ts';
import { standard } from '../signatures/standard.ts';
import { Metrics } from '../telemetry/metrics.ts';
import {
  readOptions,
  readWork,
  type WebhookNumbers,
  type WebhookOptions,
  type WebhookSettings,
} from './options.ts';
import { createProducers } from './producers.ts';
import { RECEIVER_PATH, type ReceiverOptions, receiver } from './receiver.ts';

/**
 * The webhook door (CONTRACT.md#webhook-receipt) as a Fastify plugin. It starts handlers when the application
 * is ready, and finishes or releases running attempts when the application closes. Close the inbox after
 * that. Fails with ConfigError for invalid options.
 */
export const webhook: FastifyPluginAsync<WebhookOptions> = async (app, given) => {
  const { inbox, metrics } = given;
  const { stopTimeout, ...options } = readOptions(given);
  using building = new DisposableStack();
  // Without a registry, the events count in a private one.
  const meters = metrics ?? building.use(new Metrics());
  if (metrics !== undefined) {
    addBacklogMetrics(metrics, inbox);
    addClockMetrics(metrics, inbox);
  }
  const events = building.use(createEvents(app.log, meters));
  const door = createWebhookDoor({ ...options, inbox, log: app.log, events });

  const resources = building.move();
  app.addHook('onReady', async () => door.start());
  app.addHook('onClose', async () => {
    using _ = resources;
    await door.stop(AbortSignal.timeout(stopTimeout));
  });
  door.addRoutes(app);
};

/**
 * The plan by which portico/management's `deliveries` replays a delivery under these options. Throws
 * ConfigError.
 */
export function replayPlan(options: Pick<WebhookOptions, 'handlers' | 'sources' | 'forward'>): ReplayPlan {
  const { handlers, sources, forwards } = readWork(options);
  return planOfReplay(createJobPlan(handlers, forwards), sources);
}

/** Configures a webhook door. */
interface WebhookDoorOptions extends WebhookSettings {
  readonly inbox: Inbox;
  /** The changes of the database's users, for forward addresses that subscribe to them. */
  readonly userFeed?: UserEventFeed | undefined;
  /** Handlers by event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  /** Options of the threads of isolated handlers; without it no handler is isolated. */
  readonly isolation?: Omit<ThreadOptions, 'log'> | undefined;
  readonly numbers: WebhookNumbers;
  /** The headers that /webhook keeps, in lower case. */
  readonly headers: readonly string[];
  /** The log; each delivery logs to a child of it. */
  readonly log: HandlerLog & { child(bindings: Record<string, unknown>): HandlerLog };
  readonly events: Events;
  /** Continues the traces of deliveries; by default without recording spans. */
  readonly traceTarget?: TraceTarget | undefined;
  /** Returns the trace of a request; by default the one in its headers. */
  readonly traceOf?: ReceiverOptions['traceOf'];
  /** The secrets that /webhook accepts now. */
  secrets(): readonly string[];
}

/** A webhook door: its routes, and the background work that runs jobs and removes old deliveries. */
export interface WebhookDoor {
  addRoutes(app: FastifyInstance): void;
  /** Starts the background work. Resolves once it will miss no later change of a user. */
  start(): Promise<void>;
  /** The number of running attempts by target: `handler:<event>`, `forward:<name>`. */
  running(): ReadonlyMap<string, number>;
  /**
   * The share of the process's time available for handling, from 0 to 1; less than 1 while acknowledging
   * needs the rest.
   */
  share(): number;
  /**
   * Records a crash for the running attempts, before an uncaught error ends the process. The listener for
   * uncaught errors calls it.
   */
  crash(error: unknown): Promise<void>;
  /** Waits for running attempts; `deadline` aborts them and releases their jobs. */
  stop(deadline: AbortSignal): Promise<void>;
}

const DAY = 86_400_000;

/** Creates the receiver and the background work. Throws UnusableSecretError. */
export function createWebhookDoor(options: WebhookDoorOptions): WebhookDoor {
  const { inbox, handlers, isolation, forwards, sources, deadAlert, secrets, headers, numbers, log, events } =
    options;
  const trace = options.traceTarget ?? continueTrace;
  using building = new DisposableStack();
  const defaults = {
    concurrency: numbers.concurrency,
    timeout: numbers.timeout,
    maxAttempts: numbers.attempts,
    keptAttempts: numbers.keptAttempts,
    backoff: { base: numbers.backoff, cap: numbers.maxBackoff },
  };
  const network = building.use(new Network());
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
  ];
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
    addRoutes(app) {
      app.register(receiver, {
        prefix: RECEIVER_PATH,
        inbox: {
          append: (delivery) => dispatcher.append(delivery),
          idOf: (source, dedupKey) => inbox.idOf(source, dedupKey),
        },
        secrets,
        sources,
        headers,
        plan,
        maxBodyBytes: numbers.maxBodyBytes,
        maxBytesInFlight: numbers.maxBytesInFlight,
        onAppended,
        onRefused: events.refused,
        traceOf: options.traceOf,
      });
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
      network[Symbol.dispose]();
      await Promise.all([dispatcher.stop(deadline), heartbeat.stop(), removal.stop(), producers.stop()]);
      await threads?.[Symbol.asyncDispose]();
    },
  };
}
