import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import type { NewDelivery } from '../inbox/delivery.ts';
import { Dispatcher } from '../inbox/dispatcher.ts';
import type { HandlerLog } from '../inbox/handler.ts';
import { Attendance } from '../inbox/heartbeat.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { Retention } from '../inbox/retention.ts';
import type { LaneEvents } from '../inbox/worker.ts';
import type { ForwardSettings } from './forward/forward-settings.ts';
import { forwardTarget } from './forward/forward-target.ts';
import { createPoster } from './forward/post.ts';
import { handlerTarget, type TargetDefaults } from './handler-target.ts';
import { createJobPlan, type JobPlan } from './job-plan.ts';
import { createSigner } from './schemes/schemes.ts';

/** A log that gives logs of single deliveries. */
export interface WorkLog extends HandlerLog {
  child(bindings: Record<string, unknown>): HandlerLog;
}

/** What is done with deliveries. Times are in milliseconds. */
export interface WorkOptions {
  readonly inbox: Inbox;
  /** By event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  readonly forwards: readonly ForwardSettings[];
  /** How jobs are run where a handler or forward address says nothing else. */
  readonly defaults: TargetDefaults;
  readonly lease: number;
  /** How long a delivery waits for a handler or forward address that no process has any more; 0: for ever. */
  readonly handlerGrace: number;
  /** How long deliveries are kept, and how many bytes of them; 0: without end. */
  readonly retention: number;
  readonly retentionBytes: number;
  readonly log: WorkLog;
  readonly events: LaneEvents;
}

/** What works behind the receiver. */
export interface WebhookWork {
  readonly plan: JobPlan;
  /** Says that the jobs of a delivery are there. */
  wake(delivery: Pick<NewDelivery, 'jobs'>): void;
  start(): void;
  /** `deadline` cuts the attempts under way and gives their jobs back. */
  stop(deadline: AbortSignal): Promise<void>;
}

/** Runs handlers, sends on and removes what is old. Throws UnusableSecretError. */
export function createWork(options: WorkOptions): WebhookWork {
  const { inbox, handlers, forwards, defaults, lease, log, events } = options;
  const posters = new DisposableStack();
  const targets = [
    ...[...handlers].map(([event, spec]) =>
      handlerTarget(event, spec, defaults, ({ delivery: { id }, attempt }) =>
        log.child({ delivery: id, event, attempt }),
      ),
    ),
    ...forwards.map((forward) => {
      const { secrets, allowPrivate } = forward;
      const scheme = { scheme: 'standard', params: { headerPrefix: 'webhook', tolerance: 0 } } as const;
      const sign = secrets.length === 0 ? undefined : createSigner(scheme, secrets);
      return forwardTarget(forward, defaults, sign, posters.use(createPoster({ allowPrivate })));
    }),
  ];
  const dispatcher = new Dispatcher({ inbox, targets, lease, events });
  const attendance = new Attendance({
    inbox,
    targets: targets.map(({ name }) => name),
    grace: options.handlerGrace,
    onAbandoned(jobs) {
      for (const [target, count] of jobs) {
        log.error(
          { target, jobs: count },
          'nothing runs this any more: its deliveries are dead; put it back and replay them',
        );
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
  return {
    plan: createJobPlan(handlers, forwards),
    wake({ jobs }) {
      for (const { target } of jobs) dispatcher.wake(target);
    },
    start() {
      dispatcher.start();
      attendance.start();
      retention.start();
    },
    async stop(deadline) {
      await Promise.all([dispatcher.stop(deadline), attendance.stop(), retention.stop()]);
      posters.dispose();
    },
  };
}
