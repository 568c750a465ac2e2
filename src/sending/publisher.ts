import { hash } from 'node:crypto';
import { StoreUnavailableError } from '../core/errors.ts';
import { GenerationalCache } from '../core/generational-cache.ts';
import { isRecord, type JsonPointer, parsePointer, valueAt } from '../core/json.ts';
import { isThenable, type MaybePromise, TimeSlice } from '../core/scheduler.ts';
import {
  DeliveryIds,
  DIGEST_AT,
  type NewDelivery,
  type NewJob,
  TENANT_SOURCE,
  TenantChangedError,
} from '../inbox/delivery.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { RelationEvent } from '../relations/events.ts';
import type { Relations } from '../relations/rows/conditions.ts';
import type { RowStores } from '../relations/rows/rows.ts';
import { RowReaders } from '../relations/rules/readers.ts';
import { RowRules } from '../relations/rules/views.ts';
import type { PublishedChanges } from './config.ts';
import { TENANT } from './endpoints.ts';
import { compileFilter, matchesType } from './filters.ts';
import { endpointTargetName } from './lanes.ts';
import type { SendingStore, StoredEndpoint, TenantVersion } from './store.ts';

/** An event to publish. */
export interface NewEvent {
  readonly tenant: string;
  readonly type: string;
  readonly data: unknown;
  /** The data as JSON, if the caller has it. */
  readonly json?: string | undefined;
  readonly channels?: readonly string[] | undefined;
  /** Its id. Default: a new one. */
  readonly id?: string | undefined;
  /** The order key for endpoints that have no order. Default: none. */
  readonly order?: string | undefined;
  /** It is sent no earlier, in milliseconds since the epoch. */
  readonly runAt?: number | undefined;
  /** By which a repeated request is recognised; null for none. */
  readonly key: string | null;
  /** The `requestDigest` of a request: another one with its key is refused. Default: it gets the first event. */
  readonly digest?: string | undefined;
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
  /** Stores events with their jobs, as `Inbox.appendAll` does. */
  append(deliveries: readonly NewDelivery[]): ReturnType<Inbox['appendAll']>;
}

/** How often a publication looks at the endpoints again because they have changed meanwhile. */
const MAX_LOOKS = 10;

/** An event of which the jobs are not decided yet. */
interface Draft {
  /** Its place among the events of the publication. */
  readonly at: number;
  readonly event: NewEvent;
  /** What its endpoints get. */
  readonly body: object;
  readonly facts: Omit<NewDelivery, 'jobs' | 'tenant'>;
}

/** Stores events together with a job for each endpoint that is subscribed at that moment. */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #ids = new DeliveryIds();

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /**
   * Publishes events, each of which is stored or refused alone. Resolves once all are durable or refused, to each one's
   * result: an error is an EventKeyReusedError or one of the store. Rejects as the store does.
   */
  async publishAll(events: readonly NewEvent[]): Promise<readonly (Published | Error)[]> {
    const { subscriptions, append } = this.#options;
    const results = new Array<Published | Error>(events.length);
    const repeated: Draft[] = [];
    const receivedAt = Date.now();
    const timestamp = new Date(receivedAt).toISOString();
    let drafts = events.map((event, at) => this.#draft(event, at, { receivedAt, timestamp }));
    for (let looks = 1; drafts.length > 0; looks++) {
      const known = drafts.map(({ event: { tenant } }) =>
        looks === 1 ? subscriptions.of(tenant) : subscriptions.load(tenant),
      );
      // Most often all are in memory.
      const loaded = known.some(isThenable) ? await Promise.all(known) : (known as TenantSubscriptions[]);
      const deliveries = drafts.map((draft, i) => deliveryOf(draft, loaded[i] as TenantSubscriptions));
      const appended = await append(deliveries);
      const changed: Draft[] = [];
      for (const [i, draft] of drafts.entries()) {
        const { id, dedupKey } = draft.facts;
        const result = appended[i];
        if (result instanceof TenantChangedError) changed.push(draft);
        else if (result === undefined || result instanceof Error)
          results[draft.at] = result ?? new StoreUnavailableError('The event has no result');
        else if (result.appended === 'stored' || dedupKey === null)
          results[draft.at] = { id, isRepeat: false, endpoints: deliveries[i]?.jobs.length ?? 0 };
        else repeated.push(draft);
      }
      drafts = changed;
      if (looks < MAX_LOOKS) continue;
      for (const { at } of drafts.splice(0))
        results[at] = new StoreUnavailableError('The endpoints of the tenant keep changing');
    }
    const found = repeated.map(async (draft) => {
      results[draft.at] = await this.#repeat(draft);
    });
    await Promise.all(found);
    return results;
  }

  #draft(
    event: NewEvent,
    at: number,
    { receivedAt, timestamp }: { readonly receivedAt: number; readonly timestamp: string },
  ): Draft {
    const { tenant, type, data, json, channels, key, digest, only, trace = null } = event;
    const head = {
      type,
      timestamp,
      ...(channels !== undefined && { channels }),
      // A replay to another endpoint leaves it out.
      ...(only !== undefined && { test: true }),
    };
    const body = { ...head, data };
    const facts = {
      id: event.id ?? withDigest(this.#ids.next(receivedAt), digest),
      source: `${TENANT_SOURCE}${tenant}`,
      event: type,
      dataPointer: '/data',
      contentType: 'application/json',
      body: Buffer.from(
        json === undefined ? JSON.stringify(body) : `${JSON.stringify(head).slice(0, -1)},"data":${json}}`,
      ),
      receivedAt,
      dedupKey: key,
      trace,
    };
    return { at, event, body, facts };
  }

  /** The event that an earlier request with the same key has published. */
  async #repeat({ event: { digest }, facts }: Draft): Promise<Published | Error> {
    const { id: newId, source, dedupKey } = facts;
    const id = await this.#options.inbox.idOf(source, dedupKey ?? '');
    if (id !== undefined && id !== withDigest(id, digest)) return new EventKeyReusedError();
    // Removed by retention in this moment, and its key with it: the event was published long ago.
    return { id: id ?? newId, isRepeat: true };
  }
}

/** An event with a job for each endpoint of the tenant that wants it. */
function deliveryOf({ event, body, facts }: Draft, { version, all }: TenantSubscriptions): NewDelivery {
  const { tenant, type, channels, data, only, order = null, runAt, digest } = event;
  const isLater = runAt !== undefined && runAt > facts.receivedAt;
  const jobs: NewJob[] = [];
  for (const subscription of all) {
    const isWanted =
      only === undefined ? subscription.wants({ type, channels, data }) : subscription.id === only;
    if (!isWanted) continue;
    jobs.push({
      target: subscription.target,
      orderKey: subscription.orderKey(body) ?? order,
      ...(isLater && { runAt }),
    });
  }
  return { ...facts, jobs, tenant: { name: tenant, version, digest } };
}

/** An idempotency key came with another event than before. */
export class EventKeyReusedError extends Error {
  override readonly name = 'EventKeyReusedError';
  readonly code = 'IDEMPOTENCY_KEY_REUSED';

  constructor() {
    super('the key was used before with another event');
  }
}

/** The id with the digest in the place of random characters, so that the database remembers it as long as the key. */
function withDigest(id: string, digest: string | undefined): string {
  return digest === undefined ? id : `${id.slice(0, DIGEST_AT)}${digest}`;
}

/** The same for the same event, in whatever order its members came: 12 hexadecimal digits. */
export function requestDigest({ tenant, type, data, channels, runAt, key }: NewEvent): string {
  let text = '';
  // Data may be nested more deeply than calls may be.
  const left: unknown[] = [[tenant, type, data, channels ?? null, runAt ?? null, key]];
  while (left.length > 0) {
    const value = left.pop();
    if (Array.isArray(value)) {
      text += `[${value.length},`;
      for (let i = value.length - 1; i >= 0; i--) left.push(value[i]);
    } else if (isRecord(value)) {
      const names = Object.keys(value).sort();
      text += `{${JSON.stringify(names)},`;
      for (const name of names.reverse()) left.push(value[name]);
    } else text += typeof value === 'string' ? `${JSON.stringify(value)},` : `${value},`;
  }
  return hash('sha256', text, 'hex').slice(0, 36 - DIGEST_AT);
}

/** An event as subscriptions see it. */
interface SeenEvent {
  readonly type: string;
  readonly channels: readonly string[] | undefined;
  readonly data: unknown;
}

/** The compiled subscription of an endpoint. A process keeps thousands, so it has nothing else of the endpoint. */
export class Subscription {
  /** The id of the endpoint. */
  readonly id: string;
  /** The name of its target. */
  readonly target: string;
  readonly #types: readonly string[] | undefined;
  readonly #channels: readonly string[] | undefined;
  readonly #test: ((data: unknown) => boolean) | undefined;
  readonly #order: JsonPointer | undefined;

  constructor({ id, tenant, settings }: Pick<StoredEndpoint, 'id' | 'tenant' | 'settings'>) {
    const { types, channels, filter, order } = settings;
    this.id = id;
    this.target = endpointTargetName(tenant, id);
    this.#types = types;
    this.#channels = channels;
    this.#test = filter === undefined ? undefined : compileFilter(filter);
    this.#order = order === undefined ? undefined : parsePointer(order);
  }

  /** Whether the endpoint gets events of a type, at least some. */
  takes(type: string): boolean {
    return this.#types?.some((pattern) => matchesType(pattern, type)) ?? true;
  }

  /** Whether the endpoint gets an event; never throws. */
  wants({ type, channels, data }: SeenEvent): boolean {
    if (!this.takes(type)) return false;
    const own = this.#channels;
    if (own !== undefined && !channels?.some((channel) => own.includes(channel))) return false;
    return this.#test === undefined || this.#test(data);
  }

  /** The order key of an event by its body; null for none. */
  orderKey(body: unknown): string | null {
    const value = this.#order === undefined ? undefined : valueAt(body, this.#order);
    return value === undefined || value === null ? null : JSON.stringify(value);
  }
}

/** The endpoints of a tenant, as of one version. */
interface TenantSubscriptions {
  readonly version: number;
  readonly all: readonly Subscription[];
}

/** Size of the subscriptions that a process keeps, in bytes. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Estimated size of a compiled subscription besides its settings, in bytes. */
const OVERHEAD = 500;

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
      const loaded = { version, all: endpoints.map((endpoint) => new Subscription(endpoint)) };
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

/** The relations with their rows. */
export interface ServedRows {
  readonly relations: Relations;
  readonly stores: RowStores;
}

interface ChangePublisherOptions {
  readonly changes: ReadonlyMap<string, PublishedChanges>;
  readonly served: ServedRows;
  readonly store: Pick<SendingStore, 'versions' | 'versionsOf'>;
  readonly subscriptions: Subscriptions;
  publish(event: NewEvent): Promise<unknown>;
}

/** Most series of events that are published at the same time. */
const PUBLISHED = 64;
/** Changes that are judged together. */
const JUDGED = 200;
/** Tenants that are read, and judged, together. */
const PAGE = 200;

/** Publishes changes of relations to the tenants that they concern, those of a row in order. */
export class ChangePublisher {
  readonly #options: ChangePublisherOptions;
  readonly #readers = new Map<string, RowReaders>();

  constructor(options: ChangePublisherOptions) {
    this.#options = options;
    const { changes, served } = options;
    const rules = RowRules.of(served.relations, () => false);
    for (const [name, { by }] of changes) {
      const rows = served.stores.get(name);
      if (!('reader' in by) || rows === undefined || rules === undefined) continue;
      const pointer = parsePointer(by.reader) ?? [];
      this.#readers.set(name, new RowReaders(served.relations, rules, rows, pointer));
    }
  }

  /** Resolves once all events are durable. Rejects as the store does. */
  async publish(changes: readonly RelationEvent[]): Promise<void> {
    for (const [relation, all] of Map.groupBy(changes, (change) => change.relation)) {
      const published = this.#options.changes.get(relation);
      const readers = this.#readers.get(relation);
      if (published === undefined) continue;
      if (readers !== undefined) await this.#publishToReaders(readers, published, all);
      else await this.#publishInOrder(all.flatMap((change) => eventOfColumn(change, published) ?? []));
    }
  }

  async #publishToReaders(
    readers: RowReaders,
    { events }: PublishedChanges,
    all: readonly RelationEvent[],
  ): Promise<void> {
    for (let from = 0; from < all.length; from += JUDGED) {
      const changes = all.slice(from, from + JUDGED);
      for await (const tenants of this.#tenants(readers.namesIn(changes), events)) {
        const found: NewEvent[] = [];
        for await (const { name: tenant, seen } of readers.seenBy([...tenants.keys()], changes)) {
          const types = tenants.get(tenant) ?? [];
          for (const { event } of seen)
            if (types.includes(event.name))
              found.push(eventOf(tenant, event, JSON.parse(event.json) as object));
          if (found.length < JUDGED) continue;
          await this.#publishInOrder(found.splice(0));
        }
        await this.#publishInOrder(found);
      }
    }
  }

  /** Pages of the tenants with endpoints for some of the types, and these types: those with some names, or all. */
  async *#tenants(names: ReadonlySet<string> | undefined, types: readonly string[]) {
    const { store } = this.#options;
    if (names !== undefined) {
      const valid = [...names].filter((name) => TENANT.test(name));
      for (let from = 0; from < valid.length; from += PAGE)
        yield this.#taking(await store.versionsOf(valid.slice(from, from + PAGE)), types);
      return;
    }
    for (let after = ''; ; ) {
      const page = await store.versions({ after, limit: PAGE });
      yield this.#taking(page, types);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last.name;
    }
  }

  async #taking(
    tenants: readonly TenantVersion[],
    types: readonly string[],
  ): Promise<ReadonlyMap<string, readonly string[]>> {
    const { subscriptions } = this.#options;
    const slice = new TimeSlice();
    const found = new Map<string, readonly string[]>();
    for (const { name, version, hasEndpoint } of tenants) {
      if (!hasEndpoint) continue;
      if (slice.isOver) await slice.next();
      const known = subscriptions.of(name);
      let loaded = isThenable(known) ? await known : known;
      // The first of two loads may have begun before the version was read.
      for (let loads = 0; loads < 2 && loaded.version !== version; loads++)
        loaded = await subscriptions.load(name);
      const { all } = loaded;
      const taken = types.filter((type) => all.some((subscription) => subscription.takes(type)));
      if (taken.length > 0) found.set(name, taken);
    }
    return found;
  }

  /** Publishes events, those of a tenant and a row one after the other. */
  async #publishInOrder(events: readonly NewEvent[]): Promise<void> {
    const series = [...Map.groupBy(events, ({ tenant, order }) => `${tenant} ${order}`).values()];
    for (let from = 0; from < series.length; from += PUBLISHED) {
      await Promise.all(
        series.slice(from, from + PUBLISHED).map(async (each) => {
          for (const event of each) await this.#options.publish(event);
        }),
      );
    }
  }
}

/** The event of a change; its key makes one event of a change that is published again. */
function eventOf(tenant: string, change: RelationEvent, data: object): NewEvent {
  const { name, relation, key, position, at } = change;
  return { tenant, type: name, data, key: `change ${position} ${at}`, order: `${relation}/${key}` };
}

/** The event for the tenant that a column names; undefined if it names none. */
function eventOfColumn(
  change: RelationEvent,
  { by, events, hidden }: PublishedChanges,
): NewEvent | undefined {
  if (!('tenant' in by) || !events.includes(change.name)) return undefined;
  const { row, ...data } = JSON.parse(change.json);
  const tenant = row[by.tenant];
  if ((typeof tenant !== 'string' && typeof tenant !== 'number') || !TENANT.test(String(tenant)))
    return undefined;
  return eventOf(String(tenant), change, { ...data, row: withoutHidden(row, hidden) });
}

function withoutHidden(row: Readonly<Record<string, unknown>>, hidden: readonly string[]) {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !hidden.includes(name)));
}
