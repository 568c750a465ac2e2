// Events for the endpoints of customers, and these endpoints.

/** Sends requests of the client. */
interface Sender {
  json(method: string, path: string, sent?: SenderRequest): Promise<unknown>;
}

interface SenderRequest {
  readonly query?: URLSearchParams;
  readonly body?: unknown;
  /** The body, as JSON on lines. */
  readonly lines?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

interface Abortable {
  readonly signal?: AbortSignal;
}

interface NewEvent {
  readonly tenant: string;
  readonly type: string;
  readonly data: unknown;
  readonly channels?: readonly string[];
  /** It is sent no earlier; ISO 8601. */
  readonly runAt?: string;
  /** The service publishes an event with the same key once. */
  readonly key?: string;
}

interface Published {
  readonly id: string;
  /** The number of endpoints that get it; absent for a repetition. */
  readonly endpoints?: number;
}

interface NewEndpoint {
  readonly url: string;
  readonly description?: string;
  readonly types?: readonly string[];
  readonly channels?: readonly string[];
  readonly filter?: Readonly<Record<string, unknown>>;
  readonly rate?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly order?: string;
  readonly transform?: string;
  readonly enabled?: boolean;
  /** Default: a new one. */
  readonly secret?: string;
}

interface Endpoint extends Omit<NewEndpoint, 'secret'> {
  readonly id: string;
  readonly tenant: string;
  readonly enabled: boolean;
  readonly disabledBecause: 'manual' | 'gone' | 'failing' | null;
  readonly disabledAt: string | null;
  readonly failingSince: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

interface WithSecret extends Endpoint {
  readonly secret: string;
}

interface EventType {
  readonly description?: string;
  /** A JSON Schema (2020-12). */
  readonly schema?: object | boolean;
  readonly example?: unknown;
}

interface NamedEventType extends EventType {
  readonly name: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

type SentStatus = 'pending' | 'processing' | 'done' | 'dead' | 'discarded';

/** An event at an endpoint. */
interface SentEvent {
  readonly event: string;
  readonly type: string;
  readonly status: SentStatus;
  readonly attempts: number;
  readonly publishedAt: string;
  readonly nextAttemptAt: string | null;
  readonly finishedAt: string | null;
  readonly error: string | null;
}

interface Attempt {
  readonly attempt: number;
  readonly outcome: 'done' | 'retry' | 'dead' | 'released' | 'crashed';
  readonly startedAt: string;
  readonly durationMs: number | null;
  readonly status: number | null;
  readonly answer: string | null;
  readonly error: string | null;
}

interface ReplayQuery extends Abortable {
  /** A time, or how long ago, such as `2h`. */
  readonly since: string;
  readonly until?: string;
  readonly types?: readonly string[];
}

/** How far a replay has come. */
interface Replayed {
  readonly examined: number;
  readonly added: number;
  /** The time of the last event that was examined; null if there was none. */
  readonly upTo: string | null;
}

/** The endpoints of a tenant. Lists read page by page. */
interface EndpointsClient {
  list(options?: Abortable): AsyncIterableIterator<Endpoint, undefined>;
  get(id: string, options?: Abortable): Promise<Endpoint>;
  create(endpoint: NewEndpoint, options?: Abortable): Promise<WithSecret>;
  /** Null removes a member. */
  change(
    id: string,
    patch: { readonly [N in keyof Omit<NewEndpoint, 'secret'>]?: NewEndpoint[N] | null },
    options?: Abortable,
  ): Promise<Endpoint>;
  remove(id: string, options?: Abortable): Promise<void>;
  /** Gives the endpoint a new secret; the previous ones sign too until the overlap ends. */
  rotate(
    id: string,
    options?: Abortable & { readonly secret?: string; readonly overlapHours?: number },
  ): Promise<WithSecret>;
  /** Sends a test event, as the example of a type if one is given; resolves to its id. */
  test(id: string, options?: Abortable & { readonly type?: string }): Promise<string>;
  /** The events of the endpoint, newest first. */
  events(
    id: string,
    options?: Abortable & { readonly status?: SentStatus },
  ): AsyncIterableIterator<SentEvent, undefined>;
  attempts(id: string, event: string, options?: Abortable): Promise<readonly Attempt[]>;
  resend(id: string, event: string, options?: Abortable): Promise<void>;
  /** Sends earlier events that the endpoint has not got. Goes on while the progress is read. */
  replay(id: string, query: ReplayQuery): AsyncIterableIterator<Replayed, undefined>;
}

/** What sends events to the endpoints of customers. */
export interface SendingClient {
  readonly events: {
    /** Resolves once the event is stored. */
    publish(event: NewEvent, options?: Abortable & { readonly idempotencyKey?: string }): Promise<Published>;
    /** Publishes any number of events, many in a request. A `key` in each makes it safe to call it again. */
    publishAll(
      events: Iterable<NewEvent> | AsyncIterable<NewEvent>,
      options?: Abortable,
    ): Promise<readonly Published[]>;
  };
  readonly webhooks: {
    endpoints(tenant: string): EndpointsClient;
    readonly eventTypes: {
      list(options?: Abortable): AsyncIterableIterator<NamedEventType, undefined>;
      put(name: string, type: EventType, options?: Abortable): Promise<NamedEventType>;
      remove(name: string, options?: Abortable): Promise<void>;
    };
    /** Removes a tenant with its endpoints. */
    removeTenant(tenant: string, options?: Abortable): Promise<void>;
    /** Makes a link to the portal for a tenant, valid for an hour by default. */
    link(
      tenant: string,
      options?: Abortable & { readonly minutes?: number },
    ): Promise<{ readonly url: string; readonly token: string; readonly expiresAt: string }>;
  };
}

/** Most events of a request, and the most characters of them: in UTF-8 they have at most three bytes each. */
const REQUEST = { events: 1_000, length: 1_300_000 } as const;

export function sendingClient(sender: Sender): SendingClient {
  return {
    events: {
      publish: (event, { idempotencyKey, signal } = {}) =>
        sender.json('POST', '/events', {
          body: event,
          headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
          signal,
        }) as Promise<Published>,
      async publishAll(events, { signal } = {}) {
        const published: Published[] = [];
        for await (const lines of requestsOf(events)) {
          const reply = await sender.json('POST', '/events', { lines, signal });
          published.push(...(reply as { readonly events: readonly Published[] }).events);
        }
        return published;
      },
    },
    webhooks: {
      endpoints: (tenant) => endpointsOf(sender, `${tenantPath(tenant)}/endpoints`),
      eventTypes: {
        list: (options) => listed(sender, '/webhooks/event-types', 'after', { ...options }),
        put: (name, body, { signal } = {}) =>
          sender.json('PUT', typePath(name), { body, signal }) as Promise<NamedEventType>,
        remove: (name, { signal } = {}) => removed(sender, typePath(name), signal),
      },
      removeTenant: (tenant, { signal } = {}) => removed(sender, tenantPath(tenant), signal),
      link: (tenant, { signal, ...body } = {}) =>
        sender.json('POST', `${tenantPath(tenant)}/portal`, { body, signal }) as never,
    },
  };
}

const tenantPath = (tenant: string) => `/webhooks/tenants/${encodeURIComponent(tenant)}`;
const typePath = (name: string) => `/webhooks/event-types/${encodeURIComponent(name)}`;

async function removed(sender: Sender, path: string, signal: AbortSignal | undefined): Promise<void> {
  await sender.json('DELETE', path, { signal });
}

/** The lines of each request. */
async function* requestsOf(events: Iterable<NewEvent> | AsyncIterable<NewEvent>) {
  let lines: string[] = [];
  let length = 0;
  for await (const event of events) {
    const line = JSON.stringify(event);
    if (lines.length > 0 && (lines.length === REQUEST.events || length + line.length > REQUEST.length)) {
      yield lines;
      lines = [];
      length = 0;
    }
    lines.push(line);
    length += line.length + 1;
  }
  if (lines.length > 0) yield lines;
}

/** The items of all pages. */
async function* listed<T>(
  sender: Sender,
  path: string,
  parameter: 'after' | 'before',
  { signal, ...filters }: Abortable & Readonly<Record<string, unknown>> = {},
): AsyncGenerator<T, undefined> {
  const query = new URLSearchParams({ limit: '500' });
  for (const [name, value] of Object.entries(filters))
    if (value !== undefined) query.set(name, String(value));
  for (;;) {
    const reply = await sender.json('GET', path, { query, signal });
    const { items, next } = reply as { readonly items: readonly T[]; readonly next: number | null };
    yield* items;
    if (next === null) return undefined;
    query.set(parameter, String(next));
  }
}

function endpointsOf(sender: Sender, path: string): EndpointsClient {
  const at = (id: string, ...more: readonly string[]) =>
    [path, ...[id, ...more].map(encodeURIComponent)].join('/');
  return {
    list: (options) => listed(sender, path, 'after', { ...options }),
    get: (id, { signal } = {}) => sender.json('GET', at(id), { signal }) as Promise<Endpoint>,
    create: (body, { signal } = {}) => sender.json('POST', path, { body, signal }) as Promise<WithSecret>,
    change: (id, body, { signal } = {}) =>
      sender.json('PATCH', at(id), { body, signal }) as Promise<Endpoint>,
    remove: (id, { signal } = {}) => removed(sender, at(id), signal),
    rotate: (id, { signal, ...body } = {}) =>
      sender.json('POST', at(id, 'secret'), { body, signal }) as Promise<WithSecret>,
    async test(id, { signal, ...body } = {}) {
      const reply = await sender.json('POST', at(id, 'test'), { body, signal });
      return (reply as { readonly event: string }).event;
    },
    events: (id, options) => listed(sender, at(id, 'events'), 'before', { ...options }),
    async attempts(id, event, { signal } = {}) {
      const reply = await sender.json('GET', at(id, 'events', event, 'attempts'), { signal });
      return (reply as { readonly items: readonly Attempt[] }).items;
    },
    async resend(id, event, { signal } = {}) {
      await sender.json('POST', at(id, 'events', event, 'resend'), { signal });
    },
    replay: (id, query) => replayed(sender, at(id, 'replay'), query),
  };
}

async function* replayed(
  sender: Sender,
  path: string,
  { signal, ...query }: ReplayQuery,
): AsyncGenerator<Replayed, undefined> {
  const sum = { examined: 0, added: 0 };
  let upTo: string | null = null;
  let after = 0;
  for (;;) {
    const reply = await sender.json('POST', path, { body: { ...query, after }, signal });
    const page = reply as Replayed & { readonly next: number | null };
    sum.examined += page.examined;
    sum.added += page.added;
    upTo = page.upTo ?? upTo;
    yield { ...sum, upTo };
    if (page.next === null) return undefined;
    after = page.next;
  }
}
