import { setTimeout as delay } from 'node:timers/promises';
import { readObject } from '../config/schema/fields.ts';
import type { SecretResolver } from '../config/secrets.ts';
import { isRecord } from '../core/json.ts';
import {
  type EventFollower,
  EventsGoneError,
  type UserEvent,
  type UserEventFeed,
} from '../relations/events.ts';
import { alertsSchema, deadAlertSchema } from './config.ts';
import { DeliveryIds, type HandlerLog, type NewDelivery, OWN_SOURCES } from './delivery.ts';
import { parseDeliveryBody } from './delivery-body.ts';
import { PeriodicTask } from './dispatch/periodic-task.ts';
import { type ForwardSettings, readForwards } from './forward/forward.ts';
import {
  ALERT_CHECKPOINT,
  ALERT_PREFIX,
  type Appended,
  type Enqueued,
  type Inbox,
  MAX_COUNTED,
  type RelayPlace,
  type TakenDelivery,
} from './inbox.ts';
import type { JobPlan } from './job-plan.ts';
import { type readSchedules, Scheduler } from './schedules.ts';

type DeadLetters = Awaited<ReturnType<Inbox['deadLetters']>>[number];

/** The configuration of producers. */
export interface ProducerSettings {
  /** The targets that may subscribe to changes of users. */
  readonly forwards: readonly ForwardSettings[];
  readonly schedules: ReturnType<typeof readSchedules>;
  readonly deadAlert: {
    /** Where alerts are sent; undefined: nowhere. */
    readonly address: ForwardSettings | undefined;
    /** Minimum time between two alerts about one target, in milliseconds. */
    readonly interval: number;
    /** The health check reports dead jobs if there are more than this. */
    readonly threshold: number;
    /** Whether the health check is then DOWN. */
    readonly down: boolean;
  };
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

/** Stores deliveries without a sender: schedules, alerts, changes of users, enqueued ones. */
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
  readonly plan: JobPlan;
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
  const facts = { id, source: OWN_SOURCES.users, event, dataPointer: '/data', receivedAt };
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

/** Maximum time between moves of the place, even to itself, in ms: within the shortest retention. */
const RELAY_SIGN = 10 * 60_000;

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

  /** Stores changes until another process does so or `stop` is called. Rejects as the store does. */
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

/** The target of alerts about dead letters. */
export const ALERT_TARGET = `${ALERT_PREFIX}dead`;

const EVENT = 'portico.dead_letters';

/** An alert about the jobs of a target that died by `until`, in the format of Standard Webhooks. */
function alertDelivery(
  { target, count, since }: DeadLetters,
  until: number,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery {
  const data = {
    target,
    dead: count,
    // The store stops counting there.
    ...(count === MAX_COUNTED && { atLeast: true }),
    since: since === 0 ? null : new Date(since).toISOString(),
    until: new Date(until).toISOString(),
  };
  const body = { type: EVENT, timestamp: new Date(receivedAt).toISOString(), data };
  return {
    id,
    source: OWN_SOURCES.alert,
    event: EVENT,
    dataPointer: '/data',
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
    receivedAt,
    dedupKey: null,
    jobs: [{ target: ALERT_TARGET, orderKey: null }],
  };
}

interface DeadLetterAlertsOptions {
  readonly inbox: Pick<Inbox, 'clock' | 'deadLetters' | 'checkpoints'>;
  /** Minimum time between two alerts about one target, in milliseconds. */
  readonly interval: number;
  /** Called with each alert that this process has stored. */
  onStored(alert: NewDelivery): void;
  onError(error: unknown): void;
}

/** How often dead letters are checked, in milliseconds. */
const ALERT_POLL = 1_000;
/** How long ago, in ms, the jobs of an alert died at least: running commits may add earlier ones. */
const SETTLING = 1_000;

/** Stores an alert per target with newly dead jobs, at most one per interval for all processes. */
function deadLetterAlerts(options: DeadLetterAlertsOptions): PeriodicTask {
  const ids = new DeliveryIds();
  return new PeriodicTask(ALERT_POLL, () => storeAlerts(options, ids).catch(options.onError));
}

/** Stores the alerts that are due. Rejects as the store does. */
export async function storeAlerts(
  { inbox, interval, onStored }: Omit<DeadLetterAlertsOptions, 'onError'>,
  ids: DeliveryIds,
): Promise<void> {
  const now = await inbox.clock();
  const until = now - SETTLING;
  for (const letters of await inbox.deadLetters(until, interval)) {
    const move = { name: `${ALERT_CHECKPOINT}${letters.target}`, from: letters.since, to: until };
    const alert = alertDelivery(letters, until, { id: ids.next(now), receivedAt: now });
    if ((await inbox.checkpoints.append(move, alert)) === 'stored') onStored(alert);
  }
}

const FORWARD_KEYS = ['url', 'secrets', 'allowPrivate', 'timeout', 'attempts'];

/**
 * Reads `webhook.alerts`, called `path` in messages. Appends one line per problem to `problems`; with
 * problems the result is incomplete.
 */
export function readDeadAlert(
  value: unknown,
  path: string,
  resolve: SecretResolver,
  problems: string[],
): ProducerSettings['deadAlert'] {
  const none = { address: undefined, interval: 0, threshold: 0, down: false };
  const alerts = readObject(alertsSchema, { value: value ?? {}, path }, problems);
  const given = typeof alerts?.dead === 'string' ? { url: alerts.dead } : (alerts?.dead ?? {});
  const dead = readObject(deadAlertSchema, { value: given, path: `${path}.dead` }, problems);
  if (dead === undefined || !isRecord(given)) return none;
  const { interval, threshold, down, url } = dead;
  if (url === undefined) return { address: undefined, interval, threshold, down };
  const address = Object.fromEntries(Object.entries(given).filter(([key]) => FORWARD_KEYS.includes(key)));
  const [forward] = readForwards({ dead: address }, path, resolve, problems);
  return { address: forward, interval, threshold, down };
}
