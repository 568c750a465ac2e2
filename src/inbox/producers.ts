import { readObject } from '../config/schema/fields.ts';
import type { SecretResolver } from '../config/secrets.ts';
import { isRecord } from '../core/json.ts';
import type { EventFeed, RelationEvent, UserEvent } from '../relations/events.ts';
import { alertsSchema, deadAlertSchema } from './config.ts';
import {
  DeliveryIds,
  type HandlerLog,
  isTenantSource,
  type NewDelivery,
  OWN_SOURCES,
  TENANT_SOURCE,
} from './delivery.ts';
import { parseDeliveryBody } from './delivery-body.ts';
import { PeriodicTask } from './dispatch/periodic-task.ts';
import { type ForwardSettings, readForwards } from './forward/forward.ts';
import { ChangeRelay, type RecordedChanges, toldOfRow, toldOfUser, wantsChanges } from './forward/relay.ts';
import {
  ALERT_CHECKPOINT,
  ALERT_PREFIX,
  type Appended,
  type Enqueued,
  type EnqueuedDeliveries,
  type Inbox,
  MAX_COUNTED,
  type RelayStore,
  type TakenDelivery,
} from './inbox.ts';
import type { JobPlan } from './job-plan.ts';
import { type readSchedules, Scheduler } from './schedules.ts';

type DeadLetters = Awaited<ReturnType<Inbox['deadLetters']>>[number];

/** The configuration of producers. */
export interface ProducerSettings {
  /** The targets that may subscribe to changes. */
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
  readonly userFeed?: EventFeed<UserEvent> | undefined;
  /** The changes of relations; undefined if none are recorded. */
  readonly changes?: RecordedChanges | undefined;
  /** The handlers by event. */
  readonly handlers: ReadonlyMap<string, unknown>;
  readonly plan: JobPlan;
  /** Publishes enqueued events for tenants; without it they are stored without jobs. */
  readonly publish?: PublishOwn | undefined;
  /** Publishes the changes of relations that tenants get; undefined if they get none. */
  readonly publishChanges?: PublishChanges | undefined;
  readonly log: HandlerLog;
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  onError(error: unknown): void;
}

/** Stores deliveries without a sender: schedules, alerts, changes, enqueued ones. */
interface Producers {
  /** Resolves once it will miss no later change. */
  start(): Promise<void>;
  /** Resolves once nothing is being stored. */
  stop(): Promise<void>;
}

export function createProducers(options: ProducerOptions): Producers {
  const { inbox, userFeed, changes, plan, schedules, forwards, handlers } = options;
  const { deadAlert, publishChanges, log, onAppended, onError } = options;
  const relayed = (relay: RelayStore, of: string) => ({
    inbox,
    relay,
    plan,
    onAppended,
    onLost: () =>
      log.error({}, `changes of ${of} removed before they were forwarded, going on with the next one`),
    onError,
  });
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
    new Intake({ inbox, plan, publish: options.publish, onAppended, onError }),
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
    ...(userFeed === undefined
      ? []
      : [
          new ChangeRelay({
            ...relayed(inbox.relay, 'users'),
            feed: userFeed,
            isWanted: forwards.some(({ users = [] }) => users.length > 0),
            toldOf: toldOfUser,
          }),
        ]),
    ...(changes === undefined
      ? []
      : [
          new ChangeRelay({
            ...relayed(inbox.changeRelay, 'relations'),
            feed: changes.feed,
            isWanted: publishChanges !== undefined || wantsChanges(changes, forwards, handlers),
            toldOf: toldOfRow,
            publish: publishChanges,
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

/** An event for the endpoints of a tenant that no request has published. */
interface OwnEvent {
  readonly tenant: string;
  /** Its id. Default: a new one. */
  readonly id?: string;
  readonly type: string;
  readonly data: unknown;
  readonly channels?: readonly string[] | undefined;
  /** By which a repetition is recognised. */
  readonly key: string;
  /** The order key for endpoints that have no order. Default: none. */
  readonly order?: string;
}

/** Publishes changes of relations to the tenants that they concern, each once, however often it is called with them. */
export type PublishChanges = (changes: readonly RelationEvent[]) => Promise<unknown>;

/** Publishes an event once, however often it is called with its key. */
export type PublishOwn = (event: OwnEvent) => Promise<unknown>;

interface IntakeOptions {
  readonly publish: PublishOwn | undefined;
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
      const { publish } = this.#options;
      if (publish !== undefined && found.some(({ source }) => isTenantSource(source))) {
        await publishOwn(found, publish, inbox.enqueued);
        continue;
      }
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

/** Publishes the enqueued deliveries that are events for tenants; the others are taken afterwards. */
async function publishOwn(
  found: readonly Enqueued[],
  publish: PublishOwn,
  enqueued: Pick<EnqueuedDeliveries, 'take' | 'remove'>,
): Promise<void> {
  const own = found.filter(({ source }) => isTenantSource(source));
  // Those of a tenant one after the other.
  const byTenant = Map.groupBy(own, ({ source }) => source.slice(TENANT_SOURCE.length));
  await Promise.all(
    Array.from(byTenant, async ([tenant, all]) => {
      for (const { id, event, body, dedupKey } of all) {
        const { data = null, channels } = membersOf(body);
        const key = dedupKey === null ? `enqueued-id ${id}` : `enqueued ${dedupKey}`;
        await publish({ tenant, id, type: event, data, channels, key });
      }
    }),
  );
  // A process that ends in between publishes them again, which their keys make one event.
  await enqueued.remove(own);
}

/** The members of a body that `enqueue` has written; none of one that another program wrote otherwise. */
function membersOf(body: Uint8Array): { readonly data?: unknown; readonly channels?: readonly string[] } {
  try {
    return Object(JSON.parse(Buffer.from(body).toString()));
  } catch {
    return {};
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
