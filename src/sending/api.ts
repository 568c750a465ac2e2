import { HttpProblem, parseJsonBody, type Reply, type RequestContext } from '@portico/transport';
import type { ErrorCode } from '../core/error-codes.ts';
import { isRecord } from '../core/json.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import { parseMoment } from '../inbox/delivery.ts';
import {
  attemptJson,
  bodyOf,
  endpointJson,
  eventJson,
  eventTypeJson,
  iso,
  isoOrNull,
  sentJson,
  tenantJson,
} from './api-json.ts';
import {
  enabledAs,
  newEndpointId,
  newSecret,
  readEndpoint,
  rotated,
  TENANT,
  validSecrets,
} from './endpoints.ts';
import { readEventType, SchemaError } from './event-types.ts';
import { endpointOfTarget, endpointTargetName } from './lanes.ts';
import { Subscription } from './publisher.ts';
import type { Sending } from './sending.ts';
import {
  type EndpointSettings,
  MAX_ENDPOINTS,
  SENT_STATUSES,
  type StoredEndpoint,
  type StoredEvent,
} from './store.ts';

/** Most rows of a page, and how many one has by default. */
const PAGE = { max: 500, usual: 50 } as const;
const HOUR = 3_600_000;
/** How long the previous secrets stay valid after a rotation, in hours: by default and at most. */
const OVERLAP = { usual: 24, max: 24 * 30 } as const;
const TEST_EVENT = 'portico.test';

type Params = Readonly<Record<string, string>>;
type Handle = (ctx: RequestContext, params: Params) => MaybePromise<Reply>;

interface Route {
  readonly method: string;
  readonly segments: readonly string[];
  readonly handle: Handle;
}

function problem(
  status: number,
  code: ErrorCode,
  message: string,
  details: readonly string[] = [],
): HttpProblem {
  return new HttpProblem(status, code, message, { reasons: details.map((detail) => ({ detail })) });
}

const invalid = (what: string, problems: readonly string[]) =>
  problem(400, 'INVALID_ENDPOINT', `The ${what} cannot be read: ${problems.join('; ')}`, problems);

const missing = (what: string) => problem(404, 'NO_ENDPOINT', `There is no such ${what}`);

function reply(value: unknown, status = 200, headers?: Reply['headers']): Reply {
  return { status, type: 'application/json', body: JSON.stringify(value), headers };
}

const NOTHING: Reply = { status: 204, type: '', body: '' };

/** Makes a link to the portal for a tenant from the body of a request. Throws HttpProblem. */
type LinkOf = (tenant: string, body: unknown) => MaybePromise<object>;

/**
 * The endpoints under `/webhooks`: tenants, their endpoints and events, and event types. The caller decides first which
 * paths a request may reach.
 */
export class SendingApi {
  readonly #sending: Sending;
  readonly #routes: readonly Route[];
  readonly #linkOf: LinkOf | undefined;

  /** `linkOf` makes a link to the portal for a tenant; without it there are none. */
  constructor(sending: Sending, linkOf?: LinkOf) {
    this.#sending = sending;
    this.#linkOf = linkOf;
    const endpoint = 'tenants/:tenant/endpoints/:endpoint';
    const route = (line: string, handle: Handle): Route => {
      const [method = '', path = ''] = line.split(' ');
      return { method, segments: path.split('/'), handle: (ctx, params) => handle.call(this, ctx, params) };
    };
    this.#routes = [
      route('GET event-types', this.#listTypes),
      route('GET event-types/:type', this.#showType),
      route('PUT event-types/:type', this.#putType),
      route('DELETE event-types/:type', this.#removeType),
      route('GET tenants', this.#listTenants),
      route('GET tenants/:tenant', this.#showTenant),
      route('PUT tenants/:tenant', this.#putTenant),
      route('DELETE tenants/:tenant', this.#removeTenant),
      route('POST tenants/:tenant/portal', this.#link),
      route('GET tenants/:tenant/endpoints', this.#listEndpoints),
      route('POST tenants/:tenant/endpoints', this.#createEndpoint),
      route(`GET ${endpoint}`, this.#showEndpoint),
      route(`PATCH ${endpoint}`, this.#changeEndpoint),
      route(`DELETE ${endpoint}`, this.#removeEndpoint),
      route(`GET ${endpoint}/stats`, this.#stats),
      route(`POST ${endpoint}/secret`, this.#rotate),
      route(`POST ${endpoint}/secret/show`, this.#showSecrets),
      route(`POST ${endpoint}/test`, this.#test),
      route(`POST ${endpoint}/replay`, this.#replay),
      route(`GET ${endpoint}/events`, this.#listSent),
      route(`GET ${endpoint}/events/:event/attempts`, this.#listAttempts),
      route(`POST ${endpoint}/events/:event/resend`, this.#resend),
      route('GET tenants/:tenant/events', this.#listEvents),
      route('GET tenants/:tenant/events/:event', this.#showEvent),
    ];
  }

  /** Its routes, such as `GET tenants/:tenant`. */
  get routes(): readonly string[] {
    return this.#routes.map(({ method, segments }) => `${method} ${segments.join('/')}`);
  }

  /** Answers a request for a path below the root of the API. Throws HttpProblem. */
  handle(ctx: RequestContext, path: string): MaybePromise<Reply> {
    const segments = path.split('/').filter((segment) => segment !== '');
    const allowed: string[] = [];
    for (const { method, segments: pattern, handle } of this.#routes) {
      const params = matched(pattern, segments);
      if (params === undefined) continue;
      if (method === ctx.method || (ctx.method === 'HEAD' && method === 'GET')) return handle(ctx, params);
      allowed.push(method, ...(method === 'GET' ? ['HEAD'] : []));
    }
    if (allowed.length === 0) throw missing('path below /webhooks');
    throw new HttpProblem(405, 'METHOD_NOT_ALLOWED', 'The path does not support this method', {
      headers: { allow: [...allowed, 'OPTIONS'].join(', ') },
    });
  }

  // Event types.

  async #listTypes(ctx: RequestContext): Promise<Reply> {
    const { limit, after } = pageOf(ctx);
    const found = await this.#sending.store.eventTypes({ after, limit: limit + 1 });
    return listed(found, limit, eventTypeJson);
  }

  async #showType(_ctx: RequestContext, { type = '' }: Params): Promise<Reply> {
    const found = await this.#sending.store.eventType(type);
    if (found === undefined) throw missing('event type');
    return reply(eventTypeJson(found));
  }

  async #putType(ctx: RequestContext, { type = '' }: Params): Promise<Reply> {
    const problems: string[] = [];
    let read: Awaited<ReturnType<typeof readEventType>>;
    try {
      read = await readEventType(type, parseJsonBody(ctx.body), problems);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      problems.push(`schema ${error.message}`);
    }
    if (read === undefined) throw invalid('event type', problems);
    const stored = await this.#sending.store.putEventType(read, Date.now());
    this.#sending.types.forget(type);
    return reply(eventTypeJson(stored));
  }

  async #removeType(_ctx: RequestContext, { type = '' }: Params): Promise<Reply> {
    if (!(await this.#sending.store.removeEventType(type))) throw missing('event type');
    this.#sending.types.forget(type);
    return NOTHING;
  }

  // Tenants.

  async #listTenants(ctx: RequestContext): Promise<Reply> {
    const { limit, after } = pageOf(ctx);
    const found = await this.#sending.store.tenants({ after, limit: limit + 1 });
    return listed(found, limit, tenantJson);
  }

  async #showTenant(_ctx: RequestContext, { tenant = '' }: Params): Promise<Reply> {
    const found = await this.#sending.store.tenant(tenant);
    if (found === undefined) throw missing('tenant');
    return reply(tenantJson(found));
  }

  async #putTenant(ctx: RequestContext, { tenant = '' }: Params): Promise<Reply> {
    requireTenant(tenant);
    const given = ctx.body.byteLength === 0 ? {} : parseJsonBody(ctx.body);
    const description = isRecord(given) ? (given.description ?? '') : undefined;
    if (typeof description !== 'string' || !/^\P{Cc}{0,500}$/u.test(description))
      throw invalid('tenant', ['description must be a text of at most 500 characters']);
    return reply(tenantJson(await this.#sending.store.putTenant(tenant, description, Date.now())));
  }

  async #removeTenant(_ctx: RequestContext, { tenant = '' }: Params): Promise<Reply> {
    if (!(await this.#sending.store.removeTenant(tenant))) throw missing('tenant');
    await this.#sending.subscriptions.load(tenant);
    return NOTHING;
  }

  async #link(ctx: RequestContext, { tenant = '' }: Params): Promise<Reply> {
    requireTenant(tenant);
    if (this.#linkOf === undefined)
      throw problem(404, 'NO_ENDPOINT', 'The configuration has no webhook.sending.portal');
    return reply(await this.#linkOf(tenant, ctx.body.byteLength === 0 ? {} : parseJsonBody(ctx.body)), 201);
  }

  // Endpoints.

  async #listEndpoints(ctx: RequestContext, { tenant = '' }: Params): Promise<Reply> {
    const { limit, after } = pageOf(ctx);
    const found = await this.#sending.store.endpoints(tenant, { after, limit: limit + 1 });
    return listed(found, limit, endpointJson);
  }

  async #createEndpoint(ctx: RequestContext, { tenant = '' }: Params): Promise<Reply> {
    requireTenant(tenant);
    const { settings, enabled = true, secret = newSecret() } = this.#readEndpoint(ctx);
    const stored = await this.#sending.store.createEndpoint({
      id: newEndpointId(),
      tenant,
      settings,
      secrets: [{ secret, until: null }],
      disabled: enabled ? null : 'manual',
      failingSince: null,
      createdAt: Date.now(),
    });
    if (stored === undefined)
      throw problem(
        409,
        'TOO_MANY_ENDPOINTS',
        `The tenant has ${MAX_ENDPOINTS} endpoints, the most that it may have`,
      );
    this.#sending.changed(stored);
    // This reply alone has the secret.
    return reply({ ...endpointJson(stored), secret }, 201);
  }

  async #showEndpoint(_ctx: RequestContext, params: Params): Promise<Reply> {
    return reply(endpointJson(await this.#endpoint(params)));
  }

  async #changeEndpoint(ctx: RequestContext, params: Params): Promise<Reply> {
    const before = await this.#endpoint(params);
    const { settings, enabled, secret } = this.#readEndpoint(ctx, before.settings);
    if (secret !== undefined) throw invalid('endpoint', ['secret is changed by a POST to secret']);
    const change = { settings, secrets: before.secrets, ...enabledAs(before, enabled) };
    return reply(endpointJson(await this.#store(before, change)));
  }

  async #removeEndpoint(_ctx: RequestContext, { tenant = '', endpoint = '' }: Params): Promise<Reply> {
    if (!(await this.#sending.store.removeEndpoint(tenant, endpoint))) throw missing('endpoint');
    this.#sending.changed({ tenant, id: endpoint });
    return NOTHING;
  }

  async #rotate(ctx: RequestContext, params: Params): Promise<Reply> {
    const given = ctx.body.byteLength === 0 ? {} : parseJsonBody(ctx.body);
    if (!isRecord(given))
      throw invalid('rotation', ['the body must be an object with secret and overlapHours']);
    const { secret: own, overlapHours = OVERLAP.usual } = given;
    const hours = Number(overlapHours);
    if (!Number.isFinite(hours) || hours < 0 || hours > OVERLAP.max)
      throw invalid('rotation', [`overlapHours must be a number from 0 to ${OVERLAP.max}`]);
    const before = await this.#endpoint(params);
    const secret = own === undefined ? newSecret() : own;
    const problems: string[] = [];
    const { url } = before.settings;
    if (readEndpoint({ url, secret }, this.#rules(), problems) === undefined)
      throw invalid('rotation', problems);
    const secrets = rotated(before.secrets, String(secret), Date.now(), hours * HOUR);
    const { settings, disabled, failingSince } = before;
    const stored = await this.#store(before, { settings, secrets, disabled, failingSince });
    return reply({ ...endpointJson(stored), secret });
  }

  async #showSecrets(_ctx: RequestContext, params: Params): Promise<Reply> {
    const { secrets } = await this.#endpoint(params);
    const valid = validSecrets(secrets, Date.now());
    return reply({ secrets: valid.map(({ secret, until }) => ({ secret, until: isoOrNull(until) })) });
  }

  async #stats(_ctx: RequestContext, params: Params): Promise<Reply> {
    const { counted, byStatus, hours } = await this.#sending.log.stats(
      this.#target(await this.#endpoint(params)),
    );
    return reply({
      counted,
      byStatus,
      hours: hours.map(({ at, ...counts }) => ({ at: iso(at), ...counts })),
    });
  }

  // Events and attempts.

  async #listSent(ctx: RequestContext, params: Params): Promise<Reply> {
    const target = this.#target(await this.#endpoint(params));
    const status = SENT_STATUSES.find((known) => known === ctx.query.status);
    if (ctx.query.status !== undefined && status === undefined)
      throw problem(400, 'INVALID_PARAMETER', `"status" must be one of ${SENT_STATUSES.join(', ')}`);
    const { items, next } = await this.#sending.log.sent(target, { ...backOf(ctx), status });
    return reply({ items: items.map(sentJson), next: next ?? null });
  }

  async #listAttempts(_ctx: RequestContext, params: Params): Promise<Reply> {
    const target = this.#target(await this.#endpoint(params));
    const { id } = await this.#event(params);
    const found = await this.#sending.log.attempts(target, id);
    return reply({ items: found.map(attemptJson) });
  }

  async #resend(_ctx: RequestContext, params: Params): Promise<Reply> {
    const endpoint = await this.#endpoint(params);
    requireEnabled(endpoint);
    const event = await this.#event(params);
    const orderKey = new Subscription(endpoint).orderKey(bodyOf(event));
    if (!(await this.#sending.log.resend(this.#target(endpoint), event, orderKey)))
      throw problem(409, 'NOTHING_TO_RESEND', 'The event is about to be sent to this endpoint anyway');
    return reply({ event: event.id, endpoint: endpoint.id }, 202);
  }

  async #replay(ctx: RequestContext, params: Params): Promise<Reply> {
    const given = ctx.body.byteLength === 0 ? {} : parseJsonBody(ctx.body);
    const now = Date.now();
    const { since, until, types, after = 0 } = isRecord(given) ? given : {};
    const from = typeof since === 'string' ? parseMoment(since, now) : undefined;
    const to = until === undefined ? now : typeof until === 'string' ? parseMoment(until, now) : undefined;
    const isTypes =
      types === undefined || (Array.isArray(types) && types.every((each) => typeof each === 'string'));
    const problems = [
      ...(from === undefined ? ['since must be a time like 2026-01-31T14:00Z, or how long ago like 2h'] : []),
      ...(to === undefined ? ['until must be a time like 2026-01-31T14:00Z, or how long ago like 2h'] : []),
      ...(isTypes ? [] : ['types must be an array of event types']),
      ...(Number.isSafeInteger(after) && Number(after) >= 0
        ? []
        : ['after must be the "next" of the reply before']),
    ];
    if (from === undefined || to === undefined || problems.length > 0) throw invalid('replay', problems);
    const endpoint = await this.#endpoint(params);
    requireEnabled(endpoint);
    const { tenant } = endpoint;
    const subscription = new Subscription(
      types === undefined
        ? endpoint
        : { ...endpoint, settings: { ...endpoint.settings, types: types as string[] } },
    );
    const page = await this.#sending.log.replayPage(tenant, { after: Number(after), since: from, until: to });
    const wanted = page.flatMap((event) => {
      const body = bodyOf(event);
      const { channels, data, test } = body;
      if (test === true || !subscription.wants({ type: event.type, channels, data })) return [];
      return [{ seq: event.seq, orderKey: subscription.orderKey(body) }];
    });
    const added = await this.#sending.log.addAll(this.#target(endpoint), wanted);
    const last = page.at(-1);
    return reply({
      examined: page.length,
      added,
      upTo: last === undefined ? null : iso(last.receivedAt),
      next: last?.seq ?? null,
    });
  }

  async #test(ctx: RequestContext, params: Params): Promise<Reply> {
    const given = ctx.body.byteLength === 0 ? {} : parseJsonBody(ctx.body);
    const type = isRecord(given) && typeof given.type === 'string' ? given.type : TEST_EVENT;
    const endpoint = await this.#endpoint(params);
    requireEnabled(endpoint);
    const known = type === TEST_EVENT ? undefined : await this.#sending.store.eventType(type);
    if (type !== TEST_EVENT && known?.example === undefined)
      throw problem(400, 'INVALID_ENDPOINT', 'A test event needs an event type with an example');
    const data = known?.example ?? { message: 'This is a test event.', endpoint: endpoint.id };
    const { id } = await this.#sending.publish({
      tenant: endpoint.tenant,
      type,
      data,
      key: null,
      only: endpoint.id,
    });
    return reply({ event: id }, 202);
  }

  async #listEvents(ctx: RequestContext, { tenant = '' }: Params): Promise<Reply> {
    const { type } = ctx.query;
    if (type !== undefined && typeof type !== 'string')
      throw problem(400, 'INVALID_PARAMETER', '"type" takes one event type');
    const { items, next } = await this.#sending.log.events(tenant, { ...backOf(ctx), type });
    return reply({ items: items.map(eventJson), next: next ?? null });
  }

  async #showEvent(_ctx: RequestContext, params: Params): Promise<Reply> {
    const event = await this.#event(params);
    const sent = await this.#sending.log.sentTo(params.tenant ?? '', event.id);
    const endpoints = sent.map(({ target, ...each }) => {
      const { event: _, type: __, ...state } = sentJson(each);
      return { endpoint: endpointOfTarget(target).id, ...state };
    });
    return reply({ ...eventJson(event), body: bodyOf(event), endpoints });
  }

  // Shared by the operations.

  async #endpoint({ tenant = '', endpoint = '' }: Params): Promise<StoredEndpoint> {
    const found = await this.#sending.store.endpoint(tenant, endpoint);
    if (found === undefined) throw missing('endpoint');
    return found;
  }

  async #event({ tenant = '', event = '' }: Params): Promise<StoredEvent> {
    const found = await this.#sending.log.event(tenant, event);
    if (found === undefined) throw missing('event');
    return found;
  }

  #target({ tenant, id }: StoredEndpoint): string {
    return endpointTargetName(tenant, id);
  }

  async #store(
    before: StoredEndpoint,
    change: Parameters<Sending['store']['changeEndpoint']>[1],
  ): Promise<StoredEndpoint> {
    const stored = await this.#sending.change(before, change);
    if (stored === undefined)
      throw problem(412, 'PRECONDITION_FAILED', 'The endpoint was changed meanwhile; read it again');
    return stored;
  }

  #readEndpoint(ctx: RequestContext, before?: EndpointSettings) {
    const problems: string[] = [];
    const read = readEndpoint(parseJsonBody(ctx.body), this.#rules(), problems, before);
    if (read === undefined) throw invalid('endpoint', problems);
    return read;
  }

  #rules() {
    const { allowPrivate, transforms } = this.#sending.settings;
    return { allowPrivate, transforms: new Set(transforms.keys()) };
  }
}

/** The values of the parameters if the segments of a path match a pattern. */
function matched(pattern: readonly string[], segments: readonly string[]): Params | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i] ?? '';
    if (part.startsWith(':')) params[part.slice(1)] = segment;
    else if (part !== segment) return undefined;
  }
  return params;
}

function requireTenant(name: string): void {
  if (TENANT.test(name)) return;
  throw invalid('tenant', ['the name of a tenant takes at most 64 letters, digits, "_", "-" and "."']);
}

function requireEnabled({ disabled }: StoredEndpoint): void {
  if (disabled !== null)
    throw invalid('request', [`the endpoint is disabled (${disabled}); enable it first`]);
}

function numberOf(ctx: RequestContext, name: string, fallback: number, max: number): number {
  const { [name]: given } = ctx.query;
  if (given === undefined) return fallback;
  const number = typeof given === 'string' && /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN;
  if (number <= max) return number;
  throw problem(400, 'INVALID_PARAMETER', `"${name}" must be a whole number of at most ${max}`);
}

const limitOf = (ctx: RequestContext) => Math.max(1, numberOf(ctx, 'limit', PAGE.usual, PAGE.max));

function pageOf(ctx: RequestContext) {
  return { limit: limitOf(ctx), after: numberOf(ctx, 'after', 0, Number.MAX_SAFE_INTEGER) };
}

function backOf(ctx: RequestContext) {
  const before = numberOf(ctx, 'before', Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  return { limit: limitOf(ctx), before };
}

function listed<T extends { readonly seq: number }>(
  found: readonly T[],
  limit: number,
  json: (each: T) => unknown,
): Reply {
  const items = found.slice(0, limit);
  return reply({ items: items.map(json), next: found.length > limit ? items.at(-1)?.seq : null });
}
