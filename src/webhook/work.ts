import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import type { NewDelivery } from '../inbox/delivery.ts';
import { Dispatcher } from '../inbox/dispatch/dispatcher.ts';
import { Heartbeat } from '../inbox/dispatch/heartbeat.ts';
import { Retention } from '../inbox/dispatch/retention.ts';
import type { WorkerEvents } from '../inbox/dispatch/worker.ts';
import type { HandlerLog } from '../inbox/handler.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { ForwardSettings } from './forward/forward-settings.ts';
import { forwardTarget } from './forward/forward-target.ts';
import { createPoster } from './forward/post.ts';
import { handlerTarget, type TargetDefaults } from './handler-target.ts';
import { createJobPlan, type JobPlan } from './job-plan.ts';
import { standard } from './schemes/standard.ts';

/** A log with child logs for single deliveries. */
export interface WorkLog extends HandlerLog {
  child(bindings: Record<string, unknown>): HandlerLog;
}

/** Options of the background work. Times are in milliseconds. */
export interface WorkOptions {
  readonly inbox: Inbox;
  /** By event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  readonly forwards: readonly ForwardSettings[];
  /** Defaults for handlers and forward addresses. */
  readonly defaults: TargetDefaults;
  readonly lease: number;
  /** How long jobs of a removed handler or forward address stay open; 0: for ever. */
  readonly handlerGrace: number;
  /** Maximum age of deliveries; 0: unlimited. */
  readonly retention: number;
  /** Maximum size of the inbox in bytes; 0: unlimited. */
  readonly retentionBytes: number;
  readonly log: WorkLog;
  readonly events: WorkerEvents;
}

/** The background work of the webhook door: running jobs and removing old deliveries. */
export interface WebhookWork {
  readonly plan: JobPlan;
  /** Wakes the workers of a delivery's jobs. */
  wake(delivery: Pick<NewDelivery, 'jobs'>): void;
  start(): void;
  /** Waits for running attempts; `deadline` aborts them and releases their jobs. */
  stop(deadline: AbortSignal): Promise<void>;
}

/** Creates the background work. Throws UnusableSecretError. */
export function createWork(options: WorkOptions): WebhookWork {
  const { inbox, handlers, forwards, defaults, lease, log, events } = options;
  using building = new DisposableStack();
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
      return forwardTarget(forward, defaults, sign, building.use(createPoster({ allowPrivate })));
    }),
  ];
  const dispatcher = new Dispatcher({ inbox, targets, lease, events });
  const heartbeat = new Heartbeat({
    inbox,
    targets: targets.map(({ name }) => name),
    grace: options.handlerGrace,
    onExpired(jobs) {
      for (const [target, count] of jobs) {
        const hint = 'put the handler or forward address back and replay';
        log.error({ target, jobs: count, hint }, 'orphaned jobs expired');
      }
    },
    onError: events.storeFailed,
  });
  const retention = new Retention({
    inbox,
    maxAge: options.retention,
    maxBytes: options.retentionBytes,
    onPruned: (removed) => log.info({ removed }, 'old deliveries removed'),
    onError: events.storeFailed,
  });
  const posters = building.move();
  return {
    plan: createJobPlan(handlers, forwards),
    wake({ jobs }) {
      for (const { target } of jobs) dispatcher.wake(target);
    },
    start() {
      dispatcher.start();
      heartbeat.start();
      retention.start();
    },
    async stop(deadline) {
      using _ = posters;
      await Promise.all([dispatcher.stop(deadline), heartbeat.stop(), retention.stop()]);
    },
  };
}
