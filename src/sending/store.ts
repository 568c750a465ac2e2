import type { MaybePromise } from '../core/scheduler.ts';
import type { AttemptEntry } from '../inbox/inbox.ts';

/** Most endpoints that a tenant may have. */
export const MAX_ENDPOINTS = 1_000;
/** Why an endpoint gets nothing. */
export type Disabled = 'manual' | 'gone' | 'failing';

/**
 * The states of endpoints, those that need somebody first: disabled because it failed or answered 410, failing, disabled by
 * hand, working.
 */
export const ENDPOINT_STATES = ['disabled', 'failing', 'manual', 'working'] as const;

type EndpointState = (typeof ENDPOINT_STATES)[number];

/** The state of an endpoint. */
export function endpointState({
  disabled,
  failingSince,
}: Pick<StoredEndpoint, 'disabled' | 'failingSince'>): EndpointState {
  if (disabled !== null) return disabled === 'manual' ? 'manual' : 'disabled';
  return failingSince === null ? 'working' : 'failing';
}

/** The endpoints in each state, up to 10,000. */
type EndpointCounts = Readonly<Record<EndpointState, number>>;

/** A secret with the end of its use, in milliseconds since the epoch; null for the current one. */
export interface EndpointSecret {
  readonly secret: string;
  readonly until: number | null;
}

/** What the owner of an endpoint decides. */
export interface EndpointSettings {
  readonly url: string;
  readonly description?: string;
  /** The events that it gets: `invoice.paid`, `invoice.*`, `*`. Default: all. */
  readonly types?: readonly string[];
  /** It gets only events of one of these channels. Default: all events. */
  readonly channels?: readonly string[];
  /** A condition on the data of events. */
  readonly filter?: Readonly<Record<string, unknown>>;
  /** The most attempts in a time, such as `10/s`. */
  readonly rate?: string;
  /** Headers that each request has. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A JSON pointer into the body: events with the same value there are sent one after the other. */
  readonly order?: string;
  /** The name of a transformation of the configuration. */
  readonly transform?: string;
}

/** An endpoint as it is stored. Times are in milliseconds since the epoch. */
export interface StoredEndpoint {
  readonly seq: number;
  readonly id: string;
  readonly tenant: string;
  readonly settings: EndpointSettings;
  /** The current secret first. */
  readonly secrets: readonly EndpointSecret[];
  readonly disabled: Disabled | null;
  /** Null while it is enabled. */
  readonly disabledAt: number | null;
  /** The first failed attempt since the last success; null if none failed. */
  readonly failingSince: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A tenant as it is stored. */
export interface StoredTenant {
  readonly seq: number;
  readonly name: string;
  readonly description: string;
  readonly createdAt: number;
}

/** An event type as it is stored. */
export interface StoredEventType {
  readonly seq: number;
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
  readonly example: unknown;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The endpoints of a tenant at one moment. */
interface Subscribers {
  /** The number that changes with each of its endpoints. */
  readonly version: number;
  readonly endpoints: readonly StoredEndpoint[];
}

/** A tenant with the version of its endpoints. */
export interface TenantVersion {
  readonly name: string;
  readonly version: number;
  /** Whether it has an endpoint that is enabled. */
  readonly hasEndpoint: boolean;
}

/** What a change of an endpoint stores. */
type EndpointChange = Pick<StoredEndpoint, 'settings' | 'secrets' | 'disabled' | 'failingSince'>;

/** A page of a list: at most `limit` rows after the one with the number `after`, 0 for the first page. */
interface Range {
  readonly after: number;
  readonly limit: number;
}

/**
 * Tenants, their endpoints, and event types. A change of an endpoint also changes the version of its tenant, in the same
 * commit. Times are in milliseconds since the epoch. All methods fail with StoreUnavailableError.
 */
export interface SendingStore {
  subscribers(tenant: string): MaybePromise<Subscribers>;
  /** The next tenants after one by their names, '' for the first page. */
  versions(range: { readonly after: string; readonly limit: number }): MaybePromise<readonly TenantVersion[]>;
  /** The tenants with these names; one that does not exist is missing. */
  versionsOf(names: readonly string[]): MaybePromise<readonly TenantVersion[]>;
  /** The endpoints with these ids; one that does not exist is missing. */
  endpointsOf(ids: readonly string[]): MaybePromise<readonly StoredEndpoint[]>;
  endpoints(tenant: string, range: Range): MaybePromise<readonly StoredEndpoint[]>;
  /**
   * The endpoints of all tenants, or of one, in some states: in the order of the states, and then of their numbers, after the
   * endpoint with a state's place and a number.
   */
  inStates(
    states: readonly EndpointState[],
    range: {
      readonly tenant?: string | undefined;
      readonly after: readonly [state: number, seq: number];
      readonly limit: number;
    },
  ): Promise<readonly StoredEndpoint[]>;
  countStates(tenant?: string): MaybePromise<EndpointCounts>;
  endpoint(tenant: string, id: string): MaybePromise<StoredEndpoint | undefined>;
  /** Stores an endpoint, and its tenant if that is new; undefined if the tenant has as many as it may have. */
  createEndpoint(
    endpoint: Omit<StoredEndpoint, 'seq' | 'updatedAt' | 'disabledAt'>,
  ): Promise<StoredEndpoint | undefined>;
  /** Changes an endpoint that is still as `before`; undefined if it is not. */
  changeEndpoint(
    before: StoredEndpoint,
    change: EndpointChange,
    now: number,
  ): Promise<StoredEndpoint | undefined>;
  removeEndpoint(tenant: string, id: string): Promise<boolean>;
  /** Disables an enabled endpoint; false if it is not, as when another process did so first. */
  disableEndpoint(tenant: string, id: string, why: Disabled, now: number): Promise<boolean>;
  /** Records that endpoints fail since a time, those that already do from their own; null: that they work again. */
  noteFailing(ids: readonly string[], since: number | null): Promise<void>;
  tenants(range: Range): MaybePromise<readonly StoredTenant[]>;
  tenant(name: string): MaybePromise<StoredTenant | undefined>;
  putTenant(name: string, description: string, now: number): Promise<StoredTenant>;
  /** Removes a tenant and its endpoints. */
  removeTenant(name: string): Promise<boolean>;
  eventTypes(range: Range): MaybePromise<readonly StoredEventType[]>;
  eventType(name: string): MaybePromise<StoredEventType | undefined>;
  putEventType(
    type: Pick<StoredEventType, 'name' | 'description' | 'schema' | 'example'>,
    now: number,
  ): Promise<StoredEventType>;
  removeEventType(name: string): Promise<boolean>;
}

/** The state of an event at an endpoint. */
export const SENT_STATUSES = ['pending', 'processing', 'done', 'dead', 'discarded'] as const;

type SentStatus = (typeof SENT_STATUSES)[number];

/** An event at one endpoint. Times are in milliseconds since the epoch. */
export interface SentEvent {
  /** By which lists of an endpoint are ordered. */
  readonly seq: number;
  readonly event: string;
  readonly type: string;
  readonly status: SentStatus;
  readonly attempts: number;
  readonly receivedAt: number;
  /** When the next attempt is due; null if none is. */
  readonly nextAttemptAt: number | null;
  readonly finishedAt: number | null;
  readonly error: string | null;
}

/** A published event without its body. */
export interface TenantEvent {
  readonly seq: number;
  readonly id: string;
  readonly type: string;
  readonly receivedAt: number;
}

/** A published event with its body. */
export interface StoredEvent extends TenantEvent {
  readonly body: Uint8Array;
}

/** A page of a list, newest first; it begins before the number `before`. */
interface Back {
  readonly before?: number | undefined;
  readonly limit: number;
}

interface Page<T> {
  readonly items: readonly T[];
  /** The `before` of the next page; undefined on the last one. A page may be short and still have a next one. */
  readonly next: number | undefined;
}

/** The last events of an endpoint by their status, and by the hour of their end. */
interface EndpointStats {
  /** The number of events that are counted, the latest. */
  readonly counted: number;
  readonly byStatus: Readonly<Partial<Record<SentStatus, number>>>;
  readonly hours: readonly { readonly at: number; readonly done: number; readonly dead: number }[];
}

/** What the last events of an endpoint say. Times are in milliseconds since the epoch. */
export interface RecentEvents {
  /** The number of events that were looked at. */
  readonly events: number;
  readonly done: number;
  readonly dead: number;
  readonly open: number;
  readonly lastSuccessAt: number | null;
  readonly lastFailureAt: number | null;
  /** The error of the latest event that failed. */
  readonly error: string | null;
}

/** An attempt at sending an event. */
interface SentAttempt extends AttemptEntry {
  readonly event: string;
  readonly type: string;
}

/** The events of tenants and their attempts. All methods fail with StoreUnavailableError. */
export interface SendingLog {
  /** The events of a tenant, of one type if one is given. */
  events(
    tenant: string,
    page: Back & { readonly type?: string | undefined },
  ): MaybePromise<Page<TenantEvent>>;
  /** An event with its body; undefined if the tenant has none with this id. */
  event(tenant: string, id: string): MaybePromise<StoredEvent | undefined>;
  /** The endpoints' targets that an event has jobs for. */
  sentTo(tenant: string, id: string): MaybePromise<readonly (SentEvent & { readonly target: string })[]>;
  /** The events of an endpoint, by its target. */
  sent(
    target: string,
    page: Back & { readonly status?: SentStatus | undefined },
  ): MaybePromise<Page<SentEvent>>;
  /** The attempts at sending an event to an endpoint, oldest first. */
  attempts(target: string, id: string): MaybePromise<readonly AttemptEntry[]>;
  stats(target: string): MaybePromise<EndpointStats>;
  recent(target: string): MaybePromise<RecentEvents>;
  /** The last attempts at sending its recent events, latest first. */
  lastAttempts(target: string): MaybePromise<readonly SentAttempt[]>;
  /** Has an event sent to an endpoint again, or for the first time; false if that is about to happen anyway. */
  resend(target: string, event: StoredEvent, orderKey: string | null): Promise<boolean>;
  /** The next events of a tenant that were received from `since` on and before `until`, oldest first, with their bodies. */
  replayPage(
    tenant: string,
    range: { readonly after: number; readonly since: number; readonly until: number },
  ): MaybePromise<readonly StoredEvent[]>;
  /** Has events sent to an endpoint that has not got them; resolves to how many that are. */
  addAll(
    target: string,
    events: readonly { readonly seq: number; readonly orderKey: string | null }[],
  ): Promise<number>;
}
