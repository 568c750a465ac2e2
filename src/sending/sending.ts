import type { NewDelivery } from '../inbox/delivery.ts';
import { DeliveryIds, OWN_SOURCES } from '../inbox/delivery.ts';
import type { Target } from '../inbox/dispatch/target.ts';
import { createPoster } from '../inbox/forward/poster.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { PublishChanges } from '../inbox/producers.ts';
import type { TargetTools, Work } from '../inbox/work.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { SendingSettings } from './config.ts';
import { type EndpointTarget, endpointTarget } from './endpoint-target.ts';
import { EventTypes } from './event-types.ts';
import {
  ChangePublisher,
  type NewEvent,
  type Published,
  Publisher,
  type ServedRows,
  Subscriptions,
} from './publisher.ts';
import type { Disabled, SendingLog, SendingStore, StoredEndpoint } from './store.ts';

/** The event by which the program learns that an endpoint was disabled, in the format of Standard Webhooks. */
const DISABLED_EVENT = 'portico.endpoint_disabled';

/** Idle connections to endpoints that a process keeps. */
const MAX_IDLE = 512;

interface SendingOptions {
  readonly store: SendingStore;
  readonly log: SendingLog;
  readonly inbox: Inbox;
  readonly settings: SendingSettings;
  readonly metrics: Metrics;
  onError(error: unknown): void;
  onDisabled(endpoint: StoredEndpoint, why: Disabled): void;
}

/** Sends events to the endpoints of tenants. One object serves all doors of a process. */
export class Sending {
  readonly store: SendingStore;
  readonly log: SendingLog;
  readonly settings: SendingSettings;
  readonly types: EventTypes;
  readonly subscriptions: Subscriptions;
  readonly #options: SendingOptions;
  readonly #publisher: Publisher;
  readonly #ids = new DeliveryIds();
  readonly #published: Readonly<Record<'stored' | 'repeat', { increment(): void }>>;
  /** What runs attempts in this process, if it does. */
  #work: Pick<Work, 'appendAll' | 'store'> | undefined;
  #endpoints: EndpointTarget | undefined;

  constructor(options: SendingOptions) {
    const { store, log, inbox, settings, metrics } = options;
    this.#options = options;
    this.store = store;
    this.log = log;
    this.settings = settings;
    this.types = new EventTypes(store);
    this.subscriptions = new Subscriptions(store);
    this.#publisher = new Publisher({
      inbox,
      subscriptions: this.subscriptions,
      append: (deliveries) => (this.#work ?? inbox).appendAll(deliveries),
    });
    const published = metrics.counter('sending.events', {
      description: 'Published events: stored, or a repeat of a request with the same key',
      tags: ['result'],
    });
    this.#published = {
      stored: published.with('result', 'stored'),
      repeat: published.with('result', 'repeat'),
    };
    const description = 'Endpoints that get no attempts for the moment, because the last ones failed';
    metrics.gauge('sending.circuits.open', { description }, () => this.#endpoints?.lanes.open ?? 0);
  }

  /** The target of all endpoints, for the work of a process that runs attempts. */
  targets({ network, numbers, trace, use }: TargetTools): readonly Target[] {
    const { store, settings, onError } = this.#options;
    const { allowPrivate, limits, transforms } = settings;
    const { keptAttempts, maxBodyBytes } = numbers;
    const poster = use(createPoster({ network: network(), allowPrivate, maxIdle: MAX_IDLE }));
    this.#endpoints = endpointTarget({
      store,
      poster,
      limits: { ...limits, keptAttempts, maxBodyBytes },
      transforms,
      onDisable: (endpoint, why) => this.#disable(endpoint, why),
      onError,
    });
    return [trace(this.#endpoints.target, {})];
  }

  /** Has `work` store events from now on, so that attempts start without a claim. */
  attach(work: Pick<Work, 'appendAll' | 'store'>): void {
    this.#work = work;
  }

  /** Publishes an event. Resolves once it is durable. Rejects with EventRefusedError, and as the store does. */
  async publish(event: NewEvent): Promise<Published> {
    await this.types.check(event.type, event.data);
    return this.publishUnchecked(event);
  }

  /** Publishes an event of the program itself, or one whose data were checked. Rejects as the store does. */
  async publishUnchecked(event: NewEvent): Promise<Published> {
    const [published] = await this.publishAll([event]);
    if (published === undefined || published instanceof Error) throw published;
    return published;
  }

  /** Publishes events whose data were checked, as `Publisher.publishAll` does. */
  async publishAll(events: readonly NewEvent[]): ReturnType<Publisher['publishAll']> {
    const all = await this.#publisher.publishAll(events);
    for (const each of all)
      if (!(each instanceof Error)) this.#published[each.isRepeat ? 'repeat' : 'stored'].increment();
    return all;
  }

  /** Publishes the changes of relations that tenants get; undefined if they get none. */
  publishChanges(served: ServedRows): PublishChanges | undefined {
    const { changes } = this.settings;
    if (changes.size === 0) return undefined;
    const { store, subscriptions } = this;
    const publish = (event: NewEvent) => this.publishUnchecked(event);
    const publisher = new ChangePublisher({ changes, served, store, subscriptions, publish });
    return (events) => publisher.publish(events);
  }

  /** Changes an endpoint that is still as `before`; undefined if it is not. Rejects as the store does. */
  async change(
    before: StoredEndpoint,
    change: Parameters<SendingStore['changeEndpoint']>[1],
  ): Promise<StoredEndpoint | undefined> {
    const stored = await this.store.changeEndpoint(before, change, Date.now());
    if (stored !== undefined) this.changed(stored);
    return stored;
  }

  /** Forgets an endpoint that this process has changed or removed. */
  changed({ tenant, id }: Pick<StoredEndpoint, 'tenant' | 'id'>): void {
    this.#endpoints?.forget(id);
    // The next publication reads them: a read that fails here would look like a change that was not stored.
    this.subscriptions.forget(tenant);
  }

  /** Disables an endpoint and tells the program about it, once. */
  async #disable(endpoint: StoredEndpoint, why: Exclude<Disabled, 'manual'>): Promise<void> {
    const { store, inbox, onDisabled } = this.#options;
    const { tenant, id, settings, failingSince, updatedAt } = endpoint;
    const now = Date.now();
    const data = {
      tenant,
      endpoint: id,
      url: settings.url,
      reason: why,
      failingSince: failingSince === null ? null : new Date(failingSince).toISOString(),
    };
    const body = { type: DISABLED_EVENT, timestamp: new Date(now).toISOString(), data };
    const facts = {
      id: this.#ids.next(now),
      source: OWN_SOURCES.sending,
      event: DISABLED_EVENT,
      dataPointer: '/data',
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify(body)),
      receivedAt: now,
      // A process that ends between the two commits, and another one, find the same.
      dedupKey: `${id} ${updatedAt} ${why}`,
    } satisfies Omit<NewDelivery, 'jobs'>;
    await (this.#work === undefined ? inbox.append({ ...facts, jobs: [] }) : this.#work.store(facts, body));
    if (await store.disableEndpoint(tenant, id, why, now)) onDisabled(endpoint, why);
    this.changed(endpoint);
  }
}
