import {
  integer,
  listOf,
  mapOf,
  named,
  object,
  oneOfTexts,
  pathParameter,
  queryParameter,
  TIME,
  text,
  textOrNull,
} from '../../http/openapi.ts';
import { DELIVERY_STATUSES, FILTER_FIELDS } from '../../inbox/operations.ts';
import { LOG_LEVELS } from '../../telemetry/loggers.ts';
import { MEDIA_TYPES } from '../management-errors.ts';
import { type EndpointPaths, json, read, WRITE_REFUSALS } from './shapes.ts';

const LOGGER = pathParameter('name', 'The name of a logger; ROOT is the parent of all.', text());
const DELIVERY = pathParameter('id', 'The id of a delivery.', text());
const LEVELS = LOG_LEVELS.map((level) => (level === 'silent' ? 'OFF' : level.toUpperCase()));
const done = { 204: { description: 'Done.' } };

const summary = {
  seq: integer('The place in the order of receipt.'),
  id: text(),
  source: text('The name of a signed source; empty for /webhook.'),
  event: textOrNull(),
  senderEvent: textOrNull("The sender's name for the event."),
  status: oneOfTexts(DELIVERY_STATUSES),
  receivedAt: TIME,
  attempts: integer(),
  size: integer('Size of the body, in bytes.'),
};

const job = object({
  target: text('`handler:<event>` or `forward:<name>`.'),
  status: oneOfTexts(['pending', 'processing', 'done', 'dead', 'discarded']),
  attempts: integer(),
  nextAttemptAt: { ...TIME, type: ['string', 'null'] },
  finishedAt: { ...TIME, type: ['string', 'null'] },
  'error?': textOrNull(),
});

const FILTERS: Readonly<Record<(typeof FILTER_FIELDS)[number], string>> = {
  status: 'The status of the deliveries.',
  event: "Their event, by the sender's name or the name in Portico.",
  source: 'Their source.',
  since: 'The earliest time of receipt: ISO 8601, or an age like 2h.',
  until: 'The time of receipt before which deliveries match.',
  text: 'A text in their bodies.',
};

/** The endpoints that show and control the work of the service. */
export const workApi: EndpointPaths = {
  '/loggers': {
    get: read(
      'listLoggers',
      'The level of every logger',
      object({ levels: listOf(text()), loggers: mapOf(named('Logger')), groups: { type: 'object' } }),
    ),
  },
  '/loggers/{name}': {
    get: read('readLogger', 'One logger', named('Logger'), {
      parameters: [LOGGER],
      refusals: ['NOT_FOUND'],
    }),
    post: {
      id: 'changeLogger',
      summary: 'Changes the level of a logger',
      parameters: [LOGGER, queryParameter('for', 'How long, in ISO 8601: PT10M.', text())],
      body: {
        required: false,
        content: json(
          object({
            'configuredLevel?': {
              ...textOrNull('In any case; null inherits the level of ROOT.'),
              examples: LEVELS,
            },
            'for?': textOrNull('How long, in ISO 8601: PT10M.'),
          }),
        ),
      },
      replies: done,
      refusals: ['NOT_FOUND', 'LOG_LEVEL', 'LOGGER', 'DURATION', ...WRITE_REFUSALS],
    },
  },
  '/deliveries': {
    get: read(
      'listDeliveries',
      'The webhook deliveries, newest first',
      object({
        items: listOf(object(summary)),
        next: { type: ['integer', 'null'], description: '`before` of the next page.' },
      }),
      {
        parameters: [
          ...FILTER_FIELDS.map((field) =>
            queryParameter(
              field,
              FILTERS[field],
              field === 'status' ? oneOfTexts(DELIVERY_STATUSES) : text(),
            ),
          ),
          queryParameter('limit', 'Maximum number.', integer(undefined, { minimum: 1, maximum: 1_000 })),
          queryParameter('before', 'Where the page begins.', integer(undefined, { minimum: 1 })),
        ],
        refusals: ['DELIVERY_QUERY', 'STORE_UNAVAILABLE'],
      },
    ),
  },
  '/deliveries/{id}': {
    get: read(
      'readDelivery',
      'One delivery with its jobs and body',
      object({
        ...summary,
        contentType: textOrNull(),
        dataPointer: text('Where the data is in the body.'),
        'trace?': text('Its traceparent and tracestate.'),
        jobs: listOf(job),
        'body?': { description: 'A short JSON body.' },
        'bodyBase64?': text('The beginning of any other body.'),
        'bodyTruncated?': { type: 'boolean' },
      }),
      { parameters: [DELIVERY], refusals: ['NO_DELIVERY', 'STORE_UNAVAILABLE'] },
    ),
    post: {
      id: 'changeDelivery',
      summary: 'Replays or discards a delivery',
      parameters: [DELIVERY],
      body: { required: true, content: json(object({ action: oneOfTexts(['replay', 'discard']) })) },
      replies: done,
      refusals: [
        'NO_DELIVERY',
        'DELIVERY_ACTION',
        'DELIVERY_OPEN',
        'DELIVERY_SETTLED',
        'NO_HANDLER',
        'STORE_UNAVAILABLE',
        'OUTCOME_UNKNOWN',
        ...WRITE_REFUSALS,
      ],
    },
  },
  '/auditevents': {
    get: read(
      'listAuditEvents',
      'Refusals and actions, the latest 1,000, oldest first',
      object({
        events: listOf(
          object({
            timestamp: TIME,
            principal: text(),
            type: text(),
            'data?': { type: 'object' },
          }),
        ),
      }),
      {
        parameters: [
          queryParameter('principal', 'Who did it.', text()),
          queryParameter('after', 'The time after which it happened: ISO 8601.', text()),
          queryParameter('type', 'What was done.', text()),
        ],
        refusals: ['AUDIT_QUERY', 'STORE_UNAVAILABLE'],
      },
    ),
  },
  '/httpexchanges': {
    get: read(
      'listExchanges',
      'The last 100 requests of all doors and their replies',
      object({
        exchanges: listOf(
          object({
            timestamp: TIME,
            request: object({ uri: text(), method: text(), headers: mapOf(listOf(text())) }),
            response: object({ status: integer(), headers: mapOf(listOf(text())) }),
            timeTaken: text('ISO 8601.'),
          }),
        ),
      }),
    ),
  },
  '/shutdown': {
    post: {
      ...read('shutDown', 'Stops the service', object({ message: text() })),
      refusals: WRITE_REFUSALS,
      body: { required: false, content: Object.fromEntries(MEDIA_TYPES.map((type) => [type, {}])) },
    },
  },
};

const DOCUMENT = object({ openapi: { const: '3.1.0' }, info: { type: 'object' }, paths: { type: 'object' } });
const TYPE = 'application/vnd.oai.openapi+json;version=3.1';

/** The endpoints that describe the doors. */
export const documentsApi: EndpointPaths = {
  '/openapi': {
    get: {
      id: 'readOpenApi',
      summary: 'This document',
      replies: {
        200: { description: 'OpenAPI 3.1.', content: { 'application/json': DOCUMENT, [TYPE]: DOCUMENT } },
      },
    },
  },
  '/openapi/{door}': {
    get: {
      id: 'readDoorApi',
      summary: 'The part of one door, or the schema of the GraphQL door',
      parameters: [pathParameter('door', 'The name of a door: rest, management, webhook, graphql.', text())],
      replies: {
        200: {
          description: 'OpenAPI 3.1; for GraphQL the schema definition language.',
          content: {
            'application/json': DOCUMENT,
            [TYPE]: DOCUMENT,
            'text/plain; charset=utf-8': text(),
          },
        },
      },
      refusals: ['NOT_FOUND'],
    },
  },
  '/docs': {
    get: {
      id: 'readDocs',
      summary: 'A page of all this for browsers',
      replies: { 200: { description: 'HTML.', content: { 'text/html; charset=utf-8': text() } } },
    },
  },
};
