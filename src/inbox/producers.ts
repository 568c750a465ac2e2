import { setTimeout as delay } from 'node:timers/promises';
import {
  type EventFollower,
  EventsGoneError,
  type UserEvent,
  type UserEventFeed,
} from '../relations/events.ts';
import { type DeadAlertSettings, deadLetterAlerts } from './alerts.ts';
import {
  type DeliveryFacts,
  DeliveryIds,
  type HandlerLog,
  type NewDelivery,
  type NewJob,
  USERS_SOURCE,
} from './delivery.ts';
import { parseDeliveryBody } from './delivery-body.ts';
import { PeriodicTask } from './dispatch/periodic-task.ts';
import type { ForwardSettings } from './forward/forward.ts';
import {
  type Appended,
  type Enqueued,
  type Inbox,
  RELAY_SIGN,
  type RelayPlace,
  type TakenDelivery,
} from './inbox.ts';
import type { JobPlan } from './job-plan.ts';
import { type Schedule, Scheduler } from './schedules.ts';

/** The configuration of producers. */
export interface ProducerSettings {
  /** The targets that may subscribe to changes of users. */
  readonly forwards: readonly ForwardSettings[];
  readonly schedules: readonly Schedule[];
  readonly deadAlert: DeadAlertSettings;
}

interface ProducerOptions extends ProducerSettings {
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

/** The event type that addresses get for a change of a user. */
function changeEvent(type: UserEvent['type']): string {
  return `user.${type}`;
}

/**
 * The delivery of a user's change, in the format of Standard Webhooks; undefined if no address wants it. The
 * changes of one user are sent in order, unless the address has its own order.
 */
function changeDelivery(
  { type, at, json }: UserEvent,
  plan: JobPlan,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery | undefined {
  const event = changeEvent(type);
  const data = JSON.parse(json) as { readonly id: number };
  const body = { type: event, timestamp: new Date(at).toISOString(), data };
  const facts = { id, source: USERS_SOURCE, event, dataPointer: '/data', receivedAt };
  const jobs = plan(facts, body);
  if (jobs.length === 0) return undefined;
  return {
    ...facts,
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
    dedupKey: null,
    jobs: jobs.map((job) => ({ ...job, orderKey: job.orderKey ?? String(data.id) })),
  };
}

interface UserRelayOptions {
  readonly inbox: Pick<Inbox, 'relay' | 'clock'>;
  readonly feed: UserEventFeed;
  /** Whether any address wants changes of users. */
  readonly isWanted: boolean;
  readonly plan: JobPlan;
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  /** Called when changes were removed before deliveries could be made of them. */
  onLost(): void;
  onError(error: unknown): void;
}

/** Pause after a failure, or after another process was faster, in milliseconds. */
const PAUSE = 1_000;

/**
 * Makes one delivery of each change of a user: its position moves in the commit that stores the deliveries.
 * If several processes read the same changes, one stores them; the others pause and continue after them.
 */
class UserRelay {
  readonly #options: UserRelayOptions;
  readonly #ids = new DeliveryIds();
  readonly #stopped = new AbortController();
  #follower: EventFollower | undefined;
  #running: Promise<void> | undefined;

  constructor(options: UserRelayOptions) {
    this.#options = options;
  }

  /** Resolves once every later change is sure to be relayed, or the store has failed. */
  async start(): Promise<void> {
    const { inbox, isWanted, onError } = this.#options;
    const begun = Promise.withResolvers<void>();
    // Without an address, the database need not keep changes for the relay.
    this.#running = isWanted ? this.#run(begun.resolve) : inbox.relay.end().catch(onError);
    await Promise.race([begun.promise, this.#running]);
  }

  /** Resolves once no write is in progress. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#follower?.return();
    await this.#running;
  }

  async #run(onBegun: () => void): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#relay(onBegun).catch(this.#options.onError);
      onBegun();
      if (!signal.aborted) await delay(PAUSE, undefined, { signal }).catch(() => {});
    }
  }

  /**
   * Stores past and new changes until another process does so or `stop` is called. Rejects as the store does.
   */
  async #relay(onBegun: () => void): Promise<void> {
    try {
      const follower = await this.#followFrom();
      onBegun();
      await this.#relayFrom(follower);
    } catch (error) {
      if (!(error instanceof EventsGoneError)) throw error;
      this.#options.onLost();
      await this.#options.inbox.relay.end();
    }
  }

  async #relayFrom(follower: EventFollower): Promise<void> {
    const { inbox } = this.#options;
    this.#follower = follower;
    let place: RelayPlace = follower.start;
    const sign = setInterval(() => inbox.relay.move(place, place, []).catch(() => {}), RELAY_SIGN).unref();
    try {
      if (this.#stopped.signal.aborted) return;
      for await (const events of follower) {
        const last = events.at(-1);
        if (last === undefined || !(await this.#store(place, last, events))) return;
        place = last;
      }
    } finally {
      clearInterval(sign);
      await follower.return();
    }
  }

  /** Follows the events after the relay's position. */
  async #followFrom(): Promise<EventFollower> {
    const { feed, inbox } = this.#options;
    const newest = await feed.follow();
    const place = await inbox.relay.begin(newest.start);
    if (isSame(place, newest.start)) return newest;
    await newest.return();
    return feed.follow(place);
  }

  async #store(
    from: RelayPlace,
    { position, at }: UserEvent,
    events: readonly UserEvent[],
  ): Promise<boolean> {
    const { inbox, plan, onAppended } = this.#options;
    const receivedAt = await inbox.clock();
    const deliveries = events.flatMap(
      (event) => changeDelivery(event, plan, { id: this.#ids.next(receivedAt), receivedAt }) ?? [],
    );
    const moved = await inbox.relay.move(from, { position, at }, deliveries);
    if (moved) for (const delivery of deliveries) onAppended(delivery, 'stored');
    return moved;
  }
}

function isSame(one: RelayPlace, other: RelayPlace): boolean {
  return one.position === other.position && one.at === other.at;
}
