import { StoreUnavailableError } from '../core/errors.ts';
import { GenerationalCache } from '../core/generational-cache.ts';
import { parsePointer, valueAt } from '../core/json.ts';
import { isThenable, type MaybePromise } from '../core/scheduler.ts';
import {
  DeliveryIds,
  type NewDelivery,
  type NewJob,
  TENANT_SOURCE,
  TenantChangedError,
} from '../inbox/delivery.ts';
import type { Appended, Inbox } from '../inbox/inbox.ts';
import { compileFilter, matchesType } from './filters.ts';
import { endpointTargetName } from './lanes.ts';
import type { SendingStore, StoredEndpoint } from './store.ts';

/** An event to publish. */
export interface NewEvent {
  readonly tenant: string;
  readonly type: string;
  readonly data: unknown;
  readonly channels?: readonly string[] | undefined;
  /** Its id. Default: a new one. */
  readonly id?: string | undefined;
  /** The order key for endpoints that have no order. Default: none. */
  readonly order?: string | undefined;
  /** It is sent no earlier, in milliseconds since the epoch. */
  readonly runAt?: number | undefined;
  /** By which a repeated request is recognised; null for none. */
  readonly key: string | null;
  /** The id of the only endpoint that gets it, subscribed or not. Default: all that are subscribed. */
  readonly only?: string;
  /** The trace of the request, as `storedTrace` writes it. */
  readonly trace?: string | null;
}

/** A published event. */
export interface Published {
  readonly id: string;
  /** Whether an earlier request had the same key; then this is its event. */
  readonly isRepeat: boolean;
  /** The number of endpoints that get it; undefined for a repeat. */
  readonly endpoints?: number;
}

interface PublisherOptions {
  readonly inbox: Pick<Inbox, 'idOf'>;
  readonly subscriptions: Subscriptions;
  /** Stores an event with its jobs. Rejects with TenantChangedError. */
  append(delivery: NewDelivery): Promise<Appended>;
}

/** How often a publication looks at the endpoints again because they have changed meanwhile. */
const MAX_LOOKS = 10;

/** Stores events together with a job for each endpoint that is subscribed at that moment. */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #ids = new DeliveryIds();

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Resolves once the event is durable. Rejects as the store does. */
  async publish(event: NewEvent): Promise<Published> {
    const { inbox, subscriptions, append } = this.#options;
    const receivedAt = Date.now();
    const { tenant, type, data, channels, runAt, key, only, trace = null } = event;
    const body = {
      type,
      timestamp: new Date(receivedAt).toISOString(),
      ...(channels !== undefined && { channels }),
      // A replay to another endpoint leaves it out.
      ...(only !== undefined && { test: true }),
      data,
    };
    const facts = {
      id: event.id ?? this.#ids.next(receivedAt),
      source: `${TENANT_SOURCE}${tenant}`,
      event: type,
      dataPointer: '/data',
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify(body)),
      receivedAt,
      dedupKey: key,
      trace,
    };
    const known = subscriptions.of(tenant);
    let { version, all } = isThenable(known) ? await known : known;
    for (let looks = 1; ; looks++) {
      const jobs = all.flatMap((subscription): NewJob[] => {
        const { id } = subscription.endpoint;
        const isWanted = only === undefined ? subscription.wants({ type, channels, data }) : id === only;
        if (!isWanted) return [];
        const target = endpointTargetName(tenant, id);
        const isLater = runAt !== undefined && runAt > receivedAt;
        return [
          { target, orderKey: subscription.orderKey(body) ?? event.order ?? null, ...(isLater && { runAt }) },
        ];
      });
      try {
        const appended = await append({ ...facts, jobs, tenant: { name: tenant, version } });
        if (appended === 'stored' || key === null)
          return { id: facts.id, isRepeat: false, endpoints: jobs.length };
        const id = await inbox.idOf(facts.source, key);
        // Removed by retention in this moment, and its key with it: the event was published long ago.
        return { id: id ?? facts.id, isRepeat: true };
      } catch (error) {
        if (!(error instanceof TenantChangedError)) throw error;
        if (looks === MAX_LOOKS)
          throw new StoreUnavailableError('The endpoints of the tenant keep changing', { cause: error });
        ({ version, all } = await subscriptions.load(tenant));
      }
    }
  }
}

/** An event as subscriptions see it. */
interface SeenEvent {
  readonly type: string;
  readonly channels: readonly string[] | undefined;
  readonly data: unknown;
}

/** An endpoint with its compiled subscription. */
export interface Subscription {
  readonly endpoint: StoredEndpoint;
  /** Whether it gets an event; never throws. */
  wants(event: SeenEvent): boolean;
  /** The order key of an event by its body; null for none. */
  orderKey(body: unknown): string | null;
}

/** Compiles the subscription of an endpoint. */
export function subscriptionOf(endpoint: StoredEndpoint): Subscription {
  const { types, channels, filter, order } = endpoint.settings;
  const test = filter === undefined ? undefined : compileFilter(filter);
  const pointer = order === undefined ? undefined : parsePointer(order);
  return {
    endpoint,
    wants(event) {
      if (types !== undefined && !types.some((pattern) => matchesType(pattern, event.type))) return false;
      if (channels !== undefined && !event.channels?.some((channel) => channels.includes(channel)))
        return false;
      return test === undefined || test(event.data);
    },
    orderKey(body) {
      const value = pointer === undefined ? undefined : valueAt(body, pointer);
      return value === undefined || value === null ? null : JSON.stringify(value);
    },
  };
}

/** The endpoints of a tenant, as of one version. */
interface TenantSubscriptions {
  readonly version: number;
  readonly all: readonly Subscription[];
}

/** Size of the subscriptions that a process keeps, in bytes. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Estimated size of a compiled subscription besides its settings, in bytes. */
const OVERHEAD = 1_000;

/**
 * The subscriptions of tenants, kept in memory. They may be old: a user stores its result only for the
 * version that it has (`NewDelivery.tenant`), and otherwise loads the tenant again.
 */
export class Subscriptions {
  readonly #store: Pick<SendingStore, 'subscribers'>;
  readonly #kept = new GenerationalCache<TenantSubscriptions>(MAX_BYTES);
  /** Loads in progress. */
  readonly #loading = new Map<string, Promise<TenantSubscriptions>>();

  constructor(store: Pick<SendingStore, 'subscribers'>) {
    this.#store = store;
  }

  /** The subscriptions of a tenant, from memory if they are there. Rejects as the store does. */
  of(tenant: string): MaybePromise<TenantSubscriptions> {
    return this.#kept.get(tenant) ?? this.load(tenant);
  }

  /** Has the subscriptions of a tenant read anew when they are needed. */
  forget(tenant: string): void {
    this.#kept.delete(tenant);
  }

  /** Reads the subscriptions of a tenant anew. */
  load(tenant: string): Promise<TenantSubscriptions> {
    const loading = this.#loading.get(tenant) ?? this.#load(tenant);
    this.#loading.set(tenant, loading);
    return loading;
  }

  async #load(tenant: string): Promise<TenantSubscriptions> {
    try {
      const { version, endpoints } = await this.#store.subscribers(tenant);
      const loaded = { version, all: endpoints.map(subscriptionOf) };
      const bytes = endpoints.reduce(
        (sum, { settings }) => sum + 2 * JSON.stringify(settings).length + OVERHEAD,
        200,
      );
      this.#kept.delete(tenant);
      this.#kept.set(tenant, loaded, bytes);
      return loaded;
    } finally {
      this.#loading.delete(tenant);
    }
  }
}
