import { PROBLEM_TYPE } from '@portico/transport';
import { accessApi } from '../../access/guarded.ts';
import type { AccessPolicy } from '../../access/policy.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import {
  type ApiOperation,
  type ApiReply,
  type DoorApi,
  listOf,
  mapOf,
  named,
  object,
  oneOfTexts,
  pathParameter,
  queryParameter,
  type Schema,
  TIME,
  text,
  textOrNull,
} from '../../http/openapi.ts';
import { SENT_STATUSES } from '../../sending/store.ts';
import { JSON_TYPE } from '../messages.ts';
import { BODY, header, json, NDJSON, STORE } from './rest-api.ts';

const TIME_OR_NULL = textOrNull(undefined, { format: 'date-time' });
const COUNT: Schema = { type: 'integer', minimum: 0 };
const TENANT = text(undefined, {
  maxLength: 64,
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]*$',
  examples: ['acme'],
});
const EVENT_TYPE = text('Words with dots between.', { maxLength: 128, examples: ['invoice.paid'] });
const ANY: Schema = { description: 'Any JSON value.' };
const REASON = textOrNull('Why it gets nothing; null while it is enabled.', {
  enum: ['manual', 'gone', 'failing', null],
});

/** What the owner of an endpoint decides. */
const SETTINGS = {
  'description?': text(undefined, { maxLength: 500 }),
  'types?': {
    ...listOf(text()),
    description: 'The event types that it gets: one, `invoice.*`, or `*`. Default: all.',
  },
  'channels?': {
    ...listOf(text()),
    description: 'It gets only the events of one of these channels. Default: all events.',
  },
  'filter?': { type: 'object', description: 'A condition on the data of events.' },
  'rate?': text('The most attempts in a time.', { examples: ['10/s'] }),
  'headers?': mapOf(text(), 'Headers that each request has.'),
  'order?': text(
    'A JSON pointer into the body: events with the same value there are sent one after the other.',
    { examples: ['/data/id'] },
  ),
  'transform?': text('The name of a transformation of the configuration.'),
} as const;
const WRITTEN = { ...SETTINGS, 'enabled?': { type: 'boolean' } } as const;
const URL = text('An http or https URL.', { maxLength: 2_000, examples: ['https://example.com/hooks'] });
const SECRET = text('A secret of Standard Webhooks.', {
  examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
});

const ENDPOINT = {
  id: text(undefined, { examples: ['ep_4f1c2a9b7d3e5f60718293a4'] }),
  tenant: TENANT,
  url: URL,
  ...SETTINGS,
  enabled: { type: 'boolean' },
  disabledBecause: REASON,
  disabledAt: TIME_OR_NULL,
  failingSince: textOrNull('The first failure since the last success; null if none.', {
    format: 'date-time',
  }),
  createdAt: TIME,
  updatedAt: TIME,
} as const;

/** An event at one endpoint. */
const STATE = {
  status: oneOfTexts(SENT_STATUSES),
  attempts: COUNT,
  publishedAt: TIME,
  nextAttemptAt: TIME_OR_NULL,
  finishedAt: TIME_OR_NULL,
  error: textOrNull(),
} as const;
const EVENT = { id: text(), type: EVENT_TYPE, publishedAt: TIME } as const;
const PUBLISHED = object({
  id: text('The `webhook-id` of its requests.'),
  'endpoints?': { ...COUNT, description: 'The endpoints that get it; absent for a repeated request.' },
});

const SCHEMAS = {
  NewEvent: object({
    tenant: TENANT,
    type: EVENT_TYPE,
    data: { description: 'Any JSON value of at most 256 KiB.' },
    'channels?': { ...listOf(text(undefined, { minLength: 1, maxLength: 128 })), maxItems: 20 },
    'runAt?': text('It is sent no earlier.', { format: 'date-time' }),
    'key?': text('As Idempotency-Key, for an event of NDJSON.', { maxLength: 255 }),
  }),
  PublishedEvent: PUBLISHED,
  WebhookTenant: object({ name: TENANT, description: text(), createdAt: TIME }),
  WebhookEventType: object({
    name: EVENT_TYPE,
    description: text(),
    'schema?': { description: 'A JSON Schema (2020-12) that the data of its events must fit.' },
    'example?': ANY,
    createdAt: TIME,
    updatedAt: TIME,
  }),
  NewWebhookEndpoint: object({
    url: URL,
    ...WRITTEN,
    'secret?': { ...SECRET, description: 'Default: a new one is made.' },
  }),
  WebhookEndpointPatch: object(
    { 'url?': URL, ...nullable(WRITTEN) },
    'A merge patch (RFC 7396): null removes a member.',
  ),
  WebhookEndpoint: object(ENDPOINT),
  WebhookEndpointWithSecret: object({ ...ENDPOINT, secret: SECRET }),
} as const;

function nullable(members: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> {
  return Object.fromEntries(
    Object.entries(members).map(([name, { type, ...schema }]) => [name, { ...schema, type: [type, 'null'] }]),
  );
}

const LIMIT = queryParameter('limit', 'Items per page.', {
  type: 'integer',
  minimum: 1,
  maximum: 500,
  default: 50,
});
const AFTER = queryParameter('after', 'The start of the page: `next` of the page before.', {
  type: 'integer',
});
const BEFORE = queryParameter('before', 'The start of the page: `next` of the page before.', {
  type: 'integer',
});
const pageOf = (items: Schema) =>
  object({
    items: listOf(items),
    next: { type: ['integer', 'null'], description: 'For the next page; null on the last one.' },
  });

const PARAMETERS = {
  tenant: pathParameter('tenant', 'The name of a tenant.', TENANT),
  type: pathParameter('type', 'An event type.', EVENT_TYPE),
  endpoint: pathParameter('endpoint', 'The id of an endpoint.', text()),
  event: pathParameter('event', 'The id of an event.', text()),
} as const;

/** An operation at a path below /webhooks, whose parameters the path names. */
function operation(
  path: string,
  method: string,
  { parameters = [], refusals = [], ...given }: ApiOperation,
): ApiOperation {
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(
    ([, name]) => PARAMETERS[name as keyof typeof PARAMETERS],
  );
  const all = [...named, ...parameters];
  const own: readonly ErrorCode[] = method === 'get' ? ['CROSS_SITE'] : BODY;
  return {
    ...given,
    // The management door lists endpoints too.
    id: `webhooks.${given.id}`,
    ...(all.length > 0 && { parameters: all }),
    refusals: [...STORE, ...own, 'NO_ENDPOINT', ...refusals],
  };
}

const jsonBody = (schema: Schema, required = true) => ({ required, content: { [JSON_TYPE]: schema } });
const REMOVED: ApiReply = { description: 'It is removed.' };
const INVALID = ['INVALID_ENDPOINT'] as const satisfies readonly ErrorCode[];
const CHANGED = [...INVALID, 'PRECONDITION_FAILED'] as const satisfies readonly ErrorCode[];
const PAGED = ['INVALID_PARAMETER'] as const satisfies readonly ErrorCode[];
const ONE = '/webhooks/tenants/{tenant}/endpoints/{endpoint}';

/** The operations of /webhooks by method and path. */
const WEBHOOKS: Readonly<Record<string, ApiOperation>> = {
  'get /webhooks/event-types': {
    id: 'listEventTypes',
    summary: 'Lists event types',
    parameters: [LIMIT, AFTER],
    replies: { 200: json('A page, oldest first.', pageOf(named('WebhookEventType'))) },
    refusals: PAGED,
  },
  'get /webhooks/event-types/{type}': {
    id: 'readEventType',
    summary: 'Reads an event type',
    replies: { 200: json('The event type.', named('WebhookEventType')) },
  },
  'put /webhooks/event-types/{type}': {
    id: 'putEventType',
    summary: 'Creates or replaces an event type',
    body: jsonBody(
      object({
        'description?': text(undefined, { maxLength: 500 }),
        'schema?': {
          type: ['object', 'boolean', 'null'],
          description: 'A JSON Schema (2020-12); with the example at most 64 KiB.',
        },
        'example?': ANY,
      }),
    ),
    replies: { 200: json('The event type is stored.', named('WebhookEventType')) },
    refusals: INVALID,
  },
  'delete /webhooks/event-types/{type}': {
    id: 'removeEventType',
    summary: 'Removes an event type',
    description: 'Its events may still be published, without a check.',
    replies: { 204: REMOVED },
  },
  'get /webhooks/tenants': {
    id: 'listTenants',
    summary: 'Lists tenants',
    parameters: [LIMIT, AFTER],
    replies: { 200: json('A page, oldest first.', pageOf(named('WebhookTenant'))) },
    refusals: PAGED,
  },
  'get /webhooks/tenants/{tenant}': {
    id: 'readTenant',
    summary: 'Reads a tenant',
    replies: { 200: json('The tenant.', named('WebhookTenant')) },
  },
  'put /webhooks/tenants/{tenant}': {
    id: 'putTenant',
    summary: 'Creates or describes a tenant',
    description: 'The first endpoint of a tenant creates it too.',
    body: jsonBody(object({ 'description?': text(undefined, { maxLength: 500 }) }), false),
    replies: { 200: json('The tenant is stored.', named('WebhookTenant')) },
    refusals: INVALID,
  },
  'delete /webhooks/tenants/{tenant}': {
    id: 'removeTenant',
    summary: 'Removes a tenant with its endpoints',
    replies: { 204: REMOVED },
  },
  'post /webhooks/tenants/{tenant}/portal': {
    id: 'createPortalLink',
    summary: 'Makes a link to the portal for a tenant',
    body: jsonBody(
      object({
        'minutes?': { type: 'number', exclusiveMinimum: 0, maximum: 1_440, default: 60 },
      }),
      false,
    ),
    replies: { 201: json('The link.', object({ url: text(), token: text(), expiresAt: TIME })) },
    refusals: INVALID,
  },
  'get /webhooks/tenants/{tenant}/endpoints': {
    id: 'listEndpoints',
    summary: 'Lists the endpoints of a tenant',
    parameters: [LIMIT, AFTER],
    replies: { 200: json('A page, oldest first.', pageOf(named('WebhookEndpoint'))) },
    refusals: PAGED,
  },
  'post /webhooks/tenants/{tenant}/endpoints': {
    id: 'createEndpoint',
    summary: 'Creates an endpoint',
    body: jsonBody(named('NewWebhookEndpoint')),
    replies: { 201: json('The endpoint with its secret.', named('WebhookEndpointWithSecret')) },
    refusals: [...INVALID, 'TOO_MANY_ENDPOINTS'],
  },
  [`get ${ONE}`]: {
    id: 'readEndpoint',
    summary: 'Reads an endpoint',
    replies: { 200: json('The endpoint.', named('WebhookEndpoint')) },
  },
  [`patch ${ONE}`]: {
    id: 'changeEndpoint',
    summary: 'Changes, enables or disables an endpoint',
    body: jsonBody(named('WebhookEndpointPatch')),
    replies: { 200: json('The endpoint is stored.', named('WebhookEndpoint')) },
    refusals: CHANGED,
  },
  [`delete ${ONE}`]: {
    id: 'removeEndpoint',
    summary: 'Removes an endpoint',
    replies: { 204: REMOVED },
  },
  [`get ${ONE}/stats`]: {
    id: 'readEndpointStats',
    summary: 'Counts the last events of an endpoint',
    replies: {
      200: json(
        'The events by their status, and by the hour of their end.',
        object({
          counted: COUNT,
          byStatus: mapOf(COUNT),
          hours: listOf(object({ at: TIME, done: COUNT, dead: COUNT })),
        }),
      ),
    },
  },
  [`post ${ONE}/secret`]: {
    id: 'rotateSecret',
    summary: 'Gives an endpoint a new secret',
    description: 'Requests are signed with the previous secrets too until the overlap ends.',
    body: jsonBody(
      object({
        'secret?': { ...SECRET, description: 'Default: a new one is made.' },
        'overlapHours?': { type: 'number', minimum: 0, maximum: 720, default: 24 },
      }),
      false,
    ),
    replies: { 200: json('The endpoint with its new secret.', named('WebhookEndpointWithSecret')) },
    refusals: CHANGED,
  },
  [`post ${ONE}/secret/show`]: {
    id: 'showSecrets',
    summary: 'Shows the valid secrets of an endpoint',
    replies: {
      200: json(
        'The secrets, the current one first.',
        object({ secrets: listOf(object({ secret: SECRET, until: TIME_OR_NULL })) }),
      ),
    },
  },
  [`post ${ONE}/test`]: {
    id: 'sendTestEvent',
    summary: 'Sends a test event to an endpoint',
    body: jsonBody(object({ 'type?': text('An event type with an example.') }), false),
    replies: { 202: json('The test event is stored.', object({ event: text() })) },
    refusals: INVALID,
  },
  [`post ${ONE}/replay`]: {
    id: 'replayEvents',
    summary: 'Sends earlier events to an endpoint, a page at a time',
    description:
      'Adds the events that the endpoint has not got and that its settings select. Repeat the request with `after` until `next` is null.',
    body: jsonBody(
      object({
        since: text('A time, or how long ago.', { examples: ['2h'] }),
        'until?': text('A time, or how long ago. Default: now.'),
        'types?': { ...listOf(text()), description: 'Default: those of the endpoint.' },
        'after?': { ...COUNT, description: 'The `next` of the reply before.' },
      }),
    ),
    replies: {
      200: json(
        'The page was added.',
        object({
          examined: COUNT,
          added: COUNT,
          upTo: TIME_OR_NULL,
          next: { type: ['integer', 'null'] },
        }),
      ),
    },
    refusals: INVALID,
  },
  [`get ${ONE}/events`]: {
    id: 'listSentEvents',
    summary: 'Lists the events of an endpoint with their state',
    parameters: [LIMIT, BEFORE, queryParameter('status', 'Their status.', oneOfTexts(SENT_STATUSES))],
    replies: {
      200: json('A page, newest first.', pageOf(object({ event: text(), type: EVENT_TYPE, ...STATE }))),
    },
    refusals: PAGED,
  },
  [`get ${ONE}/events/{event}/attempts`]: {
    id: 'listAttempts',
    summary: 'Lists the attempts at sending an event to an endpoint',
    replies: {
      200: json(
        'The attempts, oldest first.',
        object({
          items: listOf(
            object({
              attempt: COUNT,
              outcome: oneOfTexts(['done', 'retry', 'dead', 'released', 'crashed']),
              startedAt: TIME,
              durationMs: { type: ['number', 'null'] },
              status: { type: ['integer', 'null'], description: 'The status of the answer.' },
              answer: textOrNull('The begin of the body of the answer.'),
              error: textOrNull(),
            }),
          ),
        }),
      ),
    },
  },
  [`post ${ONE}/events/{event}/resend`]: {
    id: 'resendEvent',
    summary: 'Sends an event to an endpoint again, or for the first time',
    replies: { 202: json('It is about to be sent.', object({ event: text(), endpoint: text() })) },
    refusals: [...INVALID, 'NOTHING_TO_RESEND'],
  },
  'get /webhooks/tenants/{tenant}/events': {
    id: 'listEvents',
    summary: 'Lists the events of a tenant',
    parameters: [LIMIT, BEFORE, queryParameter('type', 'Their event type.', EVENT_TYPE)],
    replies: { 200: json('A page, newest first.', pageOf(object(EVENT))) },
    refusals: PAGED,
  },
  'get /webhooks/tenants/{tenant}/events/{event}': {
    id: 'readEvent',
    summary: 'Reads an event with its body and its state at each endpoint',
    replies: {
      200: json(
        'The event.',
        object({
          ...EVENT,
          body: { type: 'object' },
          endpoints: listOf(object({ endpoint: text(), ...STATE })),
        }),
      ),
    },
  },
};

const PUBLISH: ApiOperation = {
  id: 'events.publish',
  summary: 'Publishes an event to the endpoints of a tenant, or one on each line',
  description:
    'The reply comes once the event is stored with a job for each endpoint that is subscribed. A body of NDJSON has at most 1,000 events; if one cannot be read, none is stored.',
  parameters: [
    header(
      'idempotency-key',
      'A unique key for this event, separate for each caller: a repetition has the id of the first event and publishes nothing; with another event it is refused. For NDJSON each event has its `key`.',
      '6f1c1d5e-7b7a-4c8e-9a35-0d2f6f6f2b0e',
    ),
  ],
  body: {
    required: true,
    content: { [JSON_TYPE]: named('NewEvent'), [NDJSON]: text('An event per line, as a JSON object.') },
  },
  replies: {
    200: json('The event of an earlier request with the same key.', named('PublishedEvent')),
    202: json('The event is stored, or the events are.', {
      oneOf: [named('PublishedEvent'), object({ events: listOf(named('PublishedEvent')) })],
    }),
  },
  refusals: [
    ...STORE,
    ...BODY,
    'INVALID_EVENT',
    'EVENT_REFUSED',
    'LIMIT_EXCEEDED',
    'INVALID_IDEMPOTENCY_KEY',
    'IDEMPOTENCY_KEY_REUSED',
  ],
};

/** The OpenAPI description of sending at the REST door: of /events, and of /webhooks. */
export function sendingApi(policy: AccessPolicy | undefined): readonly DoorApi[] {
  const refusal = { type: PROBLEM_TYPE, schema: named('Problem') };
  const part = (tag: string, about: string, paths: DoorApi['paths']): DoorApi => ({
    door: 'rest',
    tag,
    about,
    refusal,
    ...(policy !== undefined && accessApi(policy, tag)),
    schemas: SCHEMAS,
    paths,
  });
  const paths: Record<string, Record<string, ApiOperation>> = {};
  for (const [line, given] of Object.entries(WEBHOOKS)) {
    const [method = '', path = ''] = line.split(' ');
    paths[path] = { ...paths[path], [method]: operation(path, method, given) };
  }
  return [
    part('events', 'Publishes events to the endpoints of tenants.', { '/events': { post: PUBLISH } }),
    part('webhooks', 'Tenants, their endpoints and events, and event types.', paths),
  ];
}
