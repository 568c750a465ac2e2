import type { ErrorCode } from '../../core/error-codes.ts';
import { TIME } from '../../http/openapi.ts';
import { ENDPOINT_STATES } from '../../sending/store.ts';
import { json, op, type Shape } from './table.ts';

const nullableTime = () => ({ ...TIME, type: ['string', 'null'] });
const STATE = `one of ${ENDPOINT_STATES.join(' ')}`;
const ID = { id: 'The id of an endpoint.' };
const TENANT = 'The name of a tenant, whose endpoints match.';

const recent: Shape = {
  events: 'integer: The latest events that are counted, at most 50.',
  done: 'integer',
  dead: 'integer: Events that were given up.',
  open: 'integer',
  lastSuccessAt: nullableTime,
  lastFailureAt: nullableTime,
  'error?': 'text|null: The last error.',
};

const endpoint: Readonly<Record<string, Shape>> = {
  id: 'text',
  tenant: 'text',
  url: 'text: With secrets in it masked.',
  'description?': 'text',
  'types?': ['text'],
  'channels?': ['text'],
  'filter?': 'object',
  'rate?': 'text',
  'headers?': ['text: The name of a header of each request.'],
  'order?': 'text',
  'transform?': 'text',
  state: STATE,
  enabled: 'boolean',
  disabledBecause: 'text|null: `manual`, `gone` (it answered 410) or `failing`.',
  disabledAt: nullableTime,
  failingSince: nullableTime,
  createdAt: 'time',
  updatedAt: 'time',
  recent,
};

/** The operations of the webhookendpoints endpoint by method and path; `writes` are the refusals of every write. */
export const webhookEndpointOperations = (writes: readonly ErrorCode[]) => ({
  'GET /webhookendpoints': op(
    'listWebhookEndpoints',
    'The endpoints of all tenants, first the disabled, then the failing ones',
    {
      reply: { items: [endpoint], next: 'text|null: `after` of the next page.' },
      parameters: {
        state: ['Only endpoints in this state.', STATE],
        tenant: TENANT,
        after: 'Where the page begins.',
        limit: ['Maximum number.', 'integer 1..100'],
      },
      refusals: ['INVALID_PARAMETER', 'STORE_UNAVAILABLE'],
    },
  ),
  'GET /webhookendpoints/counts': op('countWebhookEndpoints', 'The number of endpoints by state', {
    reply: {
      counts: Object.fromEntries(ENDPOINT_STATES.map((state) => [state, 'integer: Up to 10,000.'])),
    },
    parameters: { tenant: TENANT },
    refusals: ['INVALID_PARAMETER', 'STORE_UNAVAILABLE'],
  }),
  'GET /webhookendpoints/{id}': op('readWebhookEndpoint', 'One endpoint with its last attempts', {
    reply: {
      ...endpoint,
      stats: {
        counted: 'integer: The latest events that are counted.',
        byStatus: { '*': 'integer' },
        hours: [{ at: 'time', done: 'integer', dead: 'integer' }],
      },
      attempts: [
        {
          event: 'text: The id of the event, which is that of its delivery.',
          type: 'text',
          attempt: 'integer',
          outcome: 'one of done retry dead released crashed',
          startedAt: 'time',
          durationMs: 'integer|null',
          process: 'text',
          status: 'integer|null: The status of the answer.',
          'answer?': 'text|null: Its first kilobyte.',
          'error?': 'text|null',
        },
      ],
      hasPortal: 'boolean: Whether the action `portal` is possible.',
    },
    parameters: ID,
    refusals: ['NO_ENDPOINT', 'STORE_UNAVAILABLE'],
  }),
  'POST /webhookendpoints/{id}': op(
    'changeWebhookEndpoint',
    'Enables or disables an endpoint, or makes a link to the portal of its tenant',
    {
      parameters: ID,
      body: { required: true, content: json({ action: 'one of enable disable portal' }) },
      replies: {
        200: ['A link to the portal.', json({ url: 'text' })],
        204: ['Done.'],
      },
      refusals: [
        'INVALID_ENDPOINT',
        'NO_ENDPOINT',
        'PRECONDITION_FAILED',
        'STORE_UNAVAILABLE',
        'OUTCOME_UNKNOWN',
        ...writes,
      ],
    },
  ),
});
