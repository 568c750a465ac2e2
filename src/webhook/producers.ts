import { deadLetterAlerts } from '../inbox/alerts.ts';
import { UserRelay } from '../inbox/changes.ts';
import type { HandlerLog } from '../inbox/delivery.ts';
import { type DeliveryFacts, type NewDelivery, type NewJob, parseDeliveryBody } from '../inbox/delivery.ts';
import { PeriodicTask } from '../inbox/dispatch/periodic-task.ts';
import type { Appended, Enqueued, Inbox, TakenDelivery } from '../inbox/inbox.ts';
import type { JobPlan } from '../inbox/job-plan.ts';
import { Scheduler } from '../inbox/schedules.ts';
import type { UserEventFeed } from '../relations/events.ts';
import type { WebhookSettings } from './options.ts';

interface IntakeOptions {
  readonly inbox: Pick<Inbox, 'enqueued'>;
  /** Decides which jobs a delivery gets. */
  plan(delivery: DeliveryFacts, body: unknown): readonly NewJob[];
  /** Called with each delivery that this process has taken from the queue. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  onError(error: unknown): void;
}

/** Interval of the polls in milliseconds, with notifications from the engine and without. */
const POLL = { notified: 1_000, alone: 100 } as const;

/** Turns the deliveries that programs enqueued in their own transactions into stored deliveries, in order. */
class Intake {
  readonly #options: IntakeOptions;
  readonly #polls: PeriodicTask;
  #subscription: Disposable | undefined;

  constructor(options: IntakeOptions) {
    this.#options = options;
    const { onEnqueued } = options.inbox.enqueued;
    const interval = onEnqueued === undefined ? POLL.alone : POLL.notified;
    this.#polls = new PeriodicTask(interval, () => this.#takeAll().catch(options.onError));
  }

  start(): void {
    this.#subscription = this.#options.inbox.enqueued.onEnqueued?.(() => this.#polls.request());
    this.#polls.start();
  }

  /** Resolves when no enqueued delivery is being processed. */
  async stop(): Promise<void> {
    this.#subscription?.[Symbol.dispose]();
    await this.#polls.stop();
  }

  async #takeAll(): Promise<void> {
    const { inbox, onAppended } = this.#options;
    while (!this.#polls.stopped) {
      const found = await inbox.enqueued.oldest();
      if (found.length === 0) return;
      const taken = found.map((each) => this.#deliveryOf(each));
      const results = await inbox.enqueued.take(taken);
      for (const [i, appended] of results.entries()) {
        const delivery = taken[i]?.delivery;
        if (delivery !== undefined && appended !== undefined) onAppended(delivery, appended);
      }
    }
  }

  #deliveryOf({ seq, ...enqueued }: Enqueued): TakenDelivery {
    const stored = { ...enqueued, dataPointer: '/data', contentType: 'application/json' };
    return { seq, delivery: { ...stored, jobs: this.#options.plan(stored, parsed(stored)) } };
  }
}

function parsed(delivery: Parameters<typeof parseDeliveryBody>[0]): unknown {
  try {
    return parseDeliveryBody(delivery);
  } catch {
    // The attempts of the delivery fail with the reason.
    return undefined;
  }
}

interface ProducerOptions extends Pick<WebhookSettings, 'schedules' | 'forwards' | 'deadAlert'> {
  readonly inbox: Inbox;
  /** The changes of the database's users; undefined without users. */
  readonly userFeed?: UserEventFeed | undefined;
  readonly plan: JobPlan;
  readonly log: HandlerLog;
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  onError(error: unknown): void;
}

/**
 * Stores deliveries without a sender: from schedules, alerts, changes of users, and programs that enqueue.
 */
interface Producers {
  /** Resolves once it will miss no later change of a user. */
  start(): Promise<void>;
  /** Resolves once nothing is being stored. */
  stop(): Promise<void>;
}

export function createProducers(options: ProducerOptions): Producers {
  const { inbox, userFeed: feed, plan, schedules, forwards, deadAlert, log, onAppended, onError } = options;
  const alerts = deadLetterAlerts({
    inbox,
    interval: deadAlert.interval,
    onStored(alert) {
      log.warn({ delivery: alert.id }, 'alert about dead deliveries stored');
      onAppended(alert, 'stored');
    },
    onError,
  });
  const works = [
    new Intake({ inbox, plan, onAppended, onError }),
    new Scheduler({
      inbox,
      schedules,
      plan,
      onAppended,
      onMissed: (schedule, planned) =>
        log.warn({ schedule, plannedAt: new Date(planned).toISOString() }, 'scheduled delivery missed'),
      onError,
    }),
    ...(deadAlert.address === undefined ? [] : [alerts]),
    ...(feed === undefined
      ? []
      : [
          new UserRelay({
            inbox,
            feed,
            isWanted: forwards.some(({ users = [] }) => users.length > 0),
            plan,
            onAppended,
            onLost: () =>
              log.error(
                {},
                'changes of users removed before they were forwarded, going on with the next one',
              ),
            onError,
          }),
        ]),
  ];
  return {
    async start() {
      await Promise.all(works.map((work) => work.start()));
    },
    async stop() {
      await Promise.all(works.map((work) => work.stop()));
    },
  };
}
