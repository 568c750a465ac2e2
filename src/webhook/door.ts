import type { FastifyInstance } from 'fastify';
import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import { Dispatcher } from '../inbox/dispatch/dispatcher.ts';
import { Heartbeat } from '../inbox/dispatch/heartbeat.ts';
import { retention } from '../inbox/dispatch/retention.ts';
import type { HandlerLog } from '../inbox/handler.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { Events } from '../inbox/inbox-events.ts';
import { forwardTarget } from './forward/forward-target.ts';
import { Network } from './forward/network.ts';
import { createPoster } from './forward/post.ts';
import { handlerTarget } from './handler-target.ts';
import { createJobPlan } from './job-plan.ts';
import type { WebhookNumbers } from './options.ts';
import { RECEIVER_PATH, receiver } from './receiver/receiver.ts';
import { standard } from './schemes/standard.ts';
import type { WebhookSettings } from './settings.ts';

/** What a webhook door is made of. */
export interface WebhookDoorOptions extends WebhookSettings {
  readonly inbox: Inbox;
  /** By event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  readonly numbers: WebhookNumbers;
  /** Its children are the logs of single deliveries. */
  readonly log: HandlerLog & { child(bindings: Record<string, unknown>): HandlerLog };
  readonly events: Events;
  /** The secrets that /webhook accepts now. */
  secrets(): readonly string[];
}

/** A webhook door: its routes, and the work behind them, which runs jobs and removes old deliveries. */
export interface WebhookDoor {
  addRoutes(app: FastifyInstance): void;
  /** Starts the work. */
  start(): void;
  /** The number of running attempts by target: `handler:<event>`, `forward:<name>`. */
  running(): ReadonlyMap<string, number>;
  /**
   * Records what an error that nobody handled means for the running attempts, before the process ends. Called by the
   * listener for the error.
   */
  crash(error: unknown): Promise<void>;
  /** Waits for running attempts; `deadline` aborts them and releases their jobs. */
  stop(deadline: AbortSignal): Promise<void>;
}

const DAY = 86_400_000;

/** Puts the receiver and the work behind it together. Throws UnusableSecretError. */
export function createWebhookDoor(options: WebhookDoorOptions): WebhookDoor {
  const { inbox, handlers, forwards, sources, secrets, numbers, log, events } = options;
  using building = new DisposableStack();
  const defaults = {
    concurrency: numbers.concurrency,
    timeout: numbers.timeout,
    maxAttempts: numbers.attempts,
    backoff: { base: numbers.backoff, cap: numbers.maxBackoff },
  };
  const network = building.use(new Network());
  const targets = [
    ...[...handlers].map(([event, spec]) =>
      handlerTarget(event, spec, defaults, ({ delivery: { id }, attempt }) =>
        log.child({ delivery: id, event, attempt }),
      ),
    ),
    ...forwards.map((forward) => {
      const { secrets, allowPrivate } = forward;
      const signature = standard({ headerPrefix: 'webhook', tolerance: 0 });
      const sign = secrets.length === 0 ? undefined : signature.signer(secrets);
      return forwardTarget(forward, defaults, sign, building.use(createPoster({ network, allowPrivate })));
    }),
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
    onPruned: (removed) => log.info({ removed }, 'old deliveries removed'),
    onError: events.storeFailed,
  });
  const posters = building.move();
  return {
    addRoutes(app) {
      app.register(receiver, {
        prefix: RECEIVER_PATH,
        inbox,
        secrets,
        sources,
        plan: createJobPlan(handlers, forwards),
        maxBodyBytes: numbers.maxBodyBytes,
        maxBytesInFlight: numbers.maxBytesInFlight,
        onAppended(delivery, appended) {
          events.appended(delivery, appended);
          for (const { target } of delivery.jobs) dispatcher.wake(target);
        },
        onRefused: events.refused,
      });
    },
    start() {
      dispatcher.start();
      heartbeat.start();
      removal.start();
    },
    running: () => dispatcher.running,
    crash: (error) => dispatcher.crash(error),
    async stop(deadline) {
      using _ = posters;
      // What has no connection yet is released at once, so that no dead host delays the stop.
      network[Symbol.dispose]();
      await Promise.all([dispatcher.stop(deadline), heartbeat.stop(), removal.stop()]);
    },
  };
}
