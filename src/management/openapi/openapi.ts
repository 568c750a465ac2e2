import type { ErrorCode } from '../../core/error-codes.ts';
import {
  type ApiOperation,
  type ApiPath,
  type DoorApi,
  named,
  pathParameter,
  TIME,
  text,
  textOrNull,
} from '../../http/openapi.ts';
import { DELIVERY_STATUSES, type FILTER_FIELDS } from '../../inbox/operations.ts';
import { HISTORY_WINDOWS } from '../../telemetry/history.ts';
import { LOG_LEVELS } from '../../telemetry/loggers.ts';
import { type CustomEndpoint, parseParameter } from '../config.ts';
import type { Exposed } from '../guard.ts';
import { MEDIA_TYPES } from '../management-errors.ts';
import type { DoorOptions } from '../options.ts';
import { json, op, pathsOf, type Shape, schemaOf } from './table.ts';
import { webhookEndpointOperations } from './webhook-endpoints-api.ts';

type Paths = Readonly<Record<string, ApiPath>>;

/** The parts of the door that its description needs. */
interface ManagementApiOptions extends Pick<DoorOptions, 'endpoints' | 'users'> {
  readonly prefix: string;
  readonly exposed: readonly Exposed[];
}

/** The management door in OpenAPI: the probes, the index, and every exposed endpoint with its access. */
export function managementApi({ endpoints, users, prefix, exposed }: ManagementApiOptions): DoorApi {
  const known: Paths = Object.assign({}, OWN, ...endpoints.map(customApi));
  const described = exposed.flatMap(({ routes }) =>
    Object.entries(routes).flatMap(([route, operations]) => {
      // A path parameter in OpenAPI cannot span several segments.
      const path = route.replace('{*', '{');
      const methods = Object.entries(known[path] ?? {}).filter(
        ([method]) => operations[method as 'get' | 'post' | 'delete'] !== undefined,
      );
      return methods.length === 0 ? [] : [[prefix + path, Object.fromEntries(methods)]];
    }),
  );
  const isSecured =
    prefix === '' ? /^\/(?!livez$|readyz$)/ : new RegExp(`^${prefix.replaceAll('.', '\\.')}(?:/|$)`);
  return {
    door: 'management',
    about: 'Health, metrics and the internals of the service.',
    refusal: { type: 'application/json', schema: named('ManagementError') },
    schemas: managementSchemas,
    ...(users.length > 0 && {
      security: {
        schemes: { basic: { type: 'http', scheme: 'basic' } },
        needs: (path) => (isSecured.test(path) ? { basic: [] } : undefined),
        refusals: ['UNAUTHORIZED', 'FORBIDDEN', 'TOO_MANY_ATTEMPTS', 'TOO_MANY_LOGINS'],
      },
    }),
    paths: {
      ...PROBES,
      ...(prefix !== '' && { [prefix]: INDEX }),
      ...Object.fromEntries(described),
    },
  };
}

const ANSWER: ApiOperation['replies'][number] = {
  description: 'The result: a text, bytes, or any other value as JSON.',
  content: { 'text/plain; charset=utf-8': text(), 'application/octet-stream': {}, ...json('any') },
};

const FAILURES = [
  'NOT_FOUND',
  'PARAMETER',
  'CUSTOM_ENDPOINT_TIMEOUT',
] as const satisfies readonly ErrorCode[];

function customApi(endpoint: CustomEndpoint): Paths {
  const { id, query = [] } = endpoint;
  const segment = parseParameter(endpoint.path);
  const declared = query.flatMap((name) => parseParameter(name) ?? []);

  function operation(verb: string, last: typeof segment, isWrite: boolean): ApiOperation {
    const inPath = last === undefined ? [] : [pathParameter(last.name, 'A segment of the path.', text())];
    return {
      id: `${verb}_${id.replace(/\W/g, '_')}${last === undefined ? '' : `_${last.name}`}`,
      summary: `The operation ${verb} of ${id}`,
      parameters: [
        ...inPath,
        ...declared.map(({ name, optional }) => ({
          in: 'query' as const,
          name,
          description: 'A parameter of this endpoint.',
          schema: text(),
          required: !optional,
        })),
      ],
      ...(verb === 'write' ? { body: { required: false, content: json('any') } } : {}),
      replies: isWrite ? { 200: ANSWER, 204: { description: 'Done, without a result.' } } : { 200: ANSWER },
      refusals: isWrite ? [...FAILURES, ...WRITE_REFUSALS] : FAILURES,
    };
  }

  const pathWith = (last: typeof segment): ApiPath => ({
    ...(endpoint.read && { get: operation('read', last, false) }),
    ...(endpoint.write && { post: operation('write', last, true) }),
    ...(endpoint.delete && { delete: operation('delete', last, true) }),
  });
  return {
    ...(segment?.optional !== false && { [`/${id}`]: pathWith(undefined) }),
    ...(segment !== undefined && { [`/${id}/{${segment.name}}`]: pathWith(segment) }),
  };
}

const WRITE_REFUSALS = [
  'BODY_TOO_LARGE',
  'BUSY',
  'CROSS_SITE',
  'INVALID_UTF8',
  'MALFORMED_JSON',
  'NO_JSON',
  'PROTO_KEY',
  'TOO_DEEP',
  'TOO_SLOW',
] as const satisfies readonly ErrorCode[];

const HEALTH = {
  200: ['UP or UNKNOWN.', json('#Health')],
  503: ['DOWN or OUT_OF_SERVICE.', json('#Health')],
} as const;

const PROBES = pathsOf({
  'GET /livez': op('readLiveness', 'Whether the process is alive', { replies: HEALTH }),
  'GET /readyz': op('readReadiness', 'Whether the service accepts requests', { replies: HEALTH }),
});

const INDEX = pathsOf({
  'GET /': op('listEndpoints', 'Links to every exposed endpoint', {
    replies: {
      200: ['A page for browsers.', { ...json('#Links'), 'text/html; charset=utf-8': schemaOf('text') }],
    },
  }),
})['/'];

const LOGGER = 'The name of a logger; ROOT is the parent of all.';
const DELIVERY = { id: 'The id of a delivery.' };
const LEVELS = LOG_LEVELS.map((level) => (level === 'silent' ? 'OFF' : level.toUpperCase()));
const DONE = { 204: ['Done.'] } as const;
const FILE = { 200: ['A file.', { 'application/octet-stream': {} }] } as const;
const nullableTime = () => ({ ...TIME, type: ['string', 'null'] });

const summary: Readonly<Record<string, Shape>> = {
  seq: 'integer: The place in the order of receipt.',
  id: 'text',
  source: 'text: The name of a signed source; empty for /webhook.',
  event: 'text|null',
  senderEvent: "text|null: The sender's name for the event.",
  status: `one of ${DELIVERY_STATUSES.join(' ')}`,
  receivedAt: 'time',
  attempts: 'integer',
  size: 'integer: Size of the body, in bytes.',
};

const job: Shape = {
  target: 'text: `handler:<event>` or `forward:<name>`.',
  status: 'one of pending processing done dead discarded',
  attempts: 'integer',
  nextAttemptAt: nullableTime,
  finishedAt: nullableTime,
  'error?': 'text|null',
};

const FILTERS: Readonly<Record<(typeof FILTER_FIELDS)[number], string>> = {
  status: 'The status of the deliveries.',
  event: "Their event, by the sender's name or the name in Portico.",
  source: 'Their source.',
  target: 'The target of one of their jobs, such as `forward:billing`.',
  since: 'The earliest time of receipt: ISO 8601, or an age like 2h.',
  until: 'The time of receipt before which deliveries match.',
  text: 'A text in their bodies.',
};

const DOCUMENT: Shape = { openapi: () => ({ const: '3.1.0' }), info: 'object', paths: 'object' };
const OPENAPI = {
  'application/json': schemaOf(DOCUMENT),
  'application/vnd.oai.openapi+json;version=3.1': schemaOf(DOCUMENT),
};
const exposition = schemaOf('text: The exposition of Prometheus.');

const OWN = pathsOf({
  ...webhookEndpointOperations(WRITE_REFUSALS),
  'GET /health': op('readHealth', 'The health of the service and its dependencies', { replies: HEALTH }),
  'GET /health/{path}': op('readHealthPart', 'One component or group, at any depth', {
    parameters: { path: 'The name of a component or a group.' },
    refusals: ['NOT_FOUND'],
    replies: HEALTH,
  }),
  'GET /info': op('readInfo', 'Name, version and commit of the service', {
    reply: {
      'build?': { artifact: 'text', name: 'text', version: 'text', 'group?': 'text', 'time?': 'text' },
      'git?': { 'branch?': 'text', commit: { id: 'text', 'time?': 'text' } },
      'node?': 'object',
      'os?': 'object',
      'process?': 'object',
    },
  }),
  'GET /metrics': op('listMeters', 'The names of all meters', { reply: { names: ['text'] } }),
  'GET /metrics/{requiredMetricName}': op('readMeter', 'The measurements of a meter', {
    reply: {
      name: 'text',
      'description?': 'text',
      'baseUnit?': 'text',
      measurements: [
        {
          statistic: 'one of COUNT TOTAL_TIME MAX VALUE',
          value: 'number|text: A text for NaN and Infinity.',
        },
      ],
      availableTags: [{ tag: 'text', values: ['text'] }],
    },
    parameters: {
      requiredMetricName: 'The name of a meter.',
      tag: ['Restricts the series: `key:value`, several times for several.', ['text']],
    },
    refusals: ['NO_METER', 'WRONG_TAG'],
  }),
  'GET /env': op('readEnvironment', 'The source of every setting', {
    reply: { activeProfiles: ['text'], defaultProfiles: ['text'], propertySources: ['#PropertySource'] },
    parameters: { pattern: 'A part of the names to show, in any case.' },
    refusals: ['TWO_PATTERNS'],
  }),
  'GET /env/{toMatch}': op('readProperty', 'One setting, and its value in each source', {
    reply: {
      property: { source: 'text', value: 'any' },
      activeProfiles: ['text'],
      defaultProfiles: ['text'],
      propertySources: [{ name: 'text', 'property?': '#Property' }],
    },
    parameters: { toMatch: 'The name of a property.' },
    refusals: ['NOT_FOUND'],
  }),
  'GET /configprops': op('readConfiguration', 'Every option with its value', { reply: '#ConfigProps' }),
  'GET /configprops/{prefix}': op('readConfigurationPart', 'The options of some sections', {
    reply: '#ConfigProps',
    parameters: { prefix: 'The beginning of the sections.' },
    refusals: ['NOT_FOUND'],
  }),
  'GET /mappings': op('readMappings', 'Every path that each door serves', {
    reply: { contexts: { '*': { mappings: 'object' } } },
  }),

  'GET /loggers': op('listLoggers', 'The level of every logger', {
    reply: { levels: ['text'], loggers: { '*': '#Logger' }, groups: 'object' },
  }),
  'GET /loggers/{name}': op('readLogger', 'One logger', {
    reply: '#Logger',
    parameters: { name: LOGGER },
    refusals: ['NOT_FOUND'],
  }),
  'POST /loggers/{name}': op('changeLogger', 'Changes the level of a logger', {
    parameters: { name: LOGGER, for: 'How long, in ISO 8601: PT10M.' },
    body: {
      required: false,
      content: json({
        'configuredLevel?': () => ({
          ...textOrNull('In any case; null inherits the level of ROOT.'),
          examples: LEVELS,
        }),
        'for?': 'text|null: How long, in ISO 8601: PT10M.',
      }),
    },
    replies: DONE,
    refusals: ['NOT_FOUND', 'LOG_LEVEL', 'LOGGER', 'DURATION', ...WRITE_REFUSALS],
  }),
  'GET /deliveries': op(
    'listDeliveries',
    'The webhook deliveries, newest first, or with `after` oldest first',
    {
      reply: {
        items: [{ ...summary, 'error?': 'text|null: The error of a dead job, cut to 300 characters.' }],
        next: 'integer|null: `before` or `after` of the next page.',
      },
      parameters: {
        ...FILTERS,
        status: [FILTERS.status, `one of ${DELIVERY_STATUSES.join(' ')}`],
        limit: ['Maximum number.', 'integer 1..1000'],
        before: ['Where the page begins.', 'integer 1..'],
        after: ['Where the page begins in the order of arrival.', 'integer 0..'],
      },
      refusals: ['DELIVERY_QUERY', 'STORE_UNAVAILABLE'],
    },
  ),
  'GET /deliveries/counts': op('countDeliveries', 'The number of webhook deliveries by status', {
    reply: {
      total: 'integer',
      counts: Object.fromEntries(DELIVERY_STATUSES.map((status) => [status, 'integer'])),
      next: 'integer|null: `before` of a request that counts on, if there are very many.',
    },
    parameters: {
      ...FILTERS,
      status: ['Ignored: every status is counted.', `one of ${DELIVERY_STATUSES.join(' ')}`],
      before: ['Where the count begins.', 'integer 1..'],
    },
    refusals: ['DELIVERY_QUERY', 'STORE_UNAVAILABLE'],
  }),
  'GET /deliveries/failing': op('listFailing', 'Dead deliveries, and the targets that fail', {
    reply: {
      dead: 'integer: Deliveries of the status dead, of 10,000 that are examined.',
      targets: [
        {
          target: 'text: `handler:<event>` or `forward:<name>`.',
          dead: 'integer: Its dead jobs, up to 10,000.',
          retrying: 'integer: Its open jobs whose last attempt failed.',
          lastDeadAt: nullableTime,
          'error?': 'text|null: The last error, cut to 300 characters.',
        },
      ],
    },
    refusals: ['STORE_UNAVAILABLE'],
  }),
  'GET /deliveries/{id}': op('readDelivery', 'One delivery with its jobs and body', {
    reply: {
      ...summary,
      contentType: 'text|null',
      dataPointer: 'text: Where the data is in the body.',
      'trace?': 'text: Its traceparent and tracestate.',
      jobs: [job],
      'body?': 'any: A short JSON body.',
      'bodyBase64?': 'text: The beginning of any other body.',
      'bodyTruncated?': 'boolean',
    },
    parameters: DELIVERY,
    refusals: ['NO_DELIVERY', 'STORE_UNAVAILABLE'],
  }),
  'POST /deliveries/{id}': op('changeDelivery', 'Replays or discards a delivery', {
    parameters: DELIVERY,
    body: { required: true, content: json({ action: 'one of replay discard' }) },
    replies: DONE,
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
  }),
  'GET /auditevents': op('listAuditEvents', 'Refusals and actions, the latest 1,000, oldest first', {
    reply: { events: [{ timestamp: 'time', principal: 'text', type: 'text', 'data?': 'object' }] },
    parameters: {
      principal: 'Who did it.',
      after: 'The time after which it happened: ISO 8601.',
      type: 'What was done.',
    },
    refusals: ['AUDIT_QUERY', 'STORE_UNAVAILABLE'],
  }),
  'GET /httpexchanges': op('listExchanges', 'The last 100 requests of all doors and their replies', {
    reply: {
      exchanges: [
        {
          timestamp: 'time',
          request: { uri: 'text', method: 'text', headers: { '*': ['text'] } },
          response: { status: 'integer', headers: { '*': ['text'] } },
          timeTaken: 'text: ISO 8601.',
        },
      ],
    },
  }),
  'POST /shutdown': op('shutDown', 'Stops the service', {
    reply: { message: 'text' },
    body: { required: false, content: Object.fromEntries(MEDIA_TYPES.map((type) => [type, {}])) },
    refusals: WRITE_REFUSALS,
  }),

  'GET /history': op('readHistory', 'The recent past of the process, column by column', {
    reply: {
      window: `one of ${HISTORY_WINDOWS.join(' ')}`,
      interval: 'integer: Between two times, in milliseconds.',
      times: ['integer: In milliseconds since the epoch.'],
      columns: { '*': { unit: 'text', values: ['number|null: One for each time.'] } },
    },
    parameters: {
      window: ['How far back.', `one of ${HISTORY_WINDOWS.join(' ')}`],
      after: ['Only later times, in milliseconds since the epoch.', 'integer'],
    },
    refusals: ['HISTORY_QUERY'],
  }),
  'GET /logtail': op('readLogTail', 'The last entries of the log', {
    reply: { lines: [{ number: 'integer', entry: 'object' }] },
    parameters: { after: ['Only entries after the one with this number.', 'integer'] },
    refusals: ['LOG_NUMBER'],
  }),
  'GET /requests': op('listRequests', 'The last requests of all doors by route, latest first', {
    reply: {
      requests: [
        {
          number: 'integer: Since the start.',
          door: 'text',
          route: 'text: Its template; `none` for an unknown path.',
          method: 'text',
          status: 'integer',
          endedAt: 'time',
          durationMs: 'number',
        },
      ],
    },
  }),

  'GET /prometheus': op('scrape', 'All measurements, for Prometheus', {
    parameters: { includedNames: ['The names of the meters to show.', ['text']] },
    replies: {
      200: [
        'In the format that Accept prefers.',
        {
          'text/plain; version=0.0.4; charset=utf-8': exposition,
          'application/openmetrics-text; version=1.0.0; charset=utf-8': exposition,
        },
      ],
    },
  }),
  'GET /eventloop': op('readEventLoop', 'How busy the event loop is', {
    reply: {
      window: 'text: ISO 8601.',
      utilization: { sinceStart: 'ratio', window: 'ratio' },
      delay: { unit: () => ({ const: 'milliseconds' }), min: 'ratio', mean: 'ratio', max: 'ratio' },
    },
  }),
  'GET /threaddump': op('readThreads', 'The stacks of the main thread and every worker', {
    replies: {
      200: [
        'In the format that Accept prefers.',
        {
          ...json({
            threads: [
              { threadName: 'text', threadId: 'integer', threadState: 'text', stackTrace: [{ '*': 'any' }] },
            ],
          }),
          'text/plain;charset=UTF-8': schemaOf('text'),
        },
      ],
    },
  }),
  'GET /heapdump': op('dumpHeap', 'The heap, secrets included', {
    replies: FILE,
    refusals: ['CROSS_SITE', 'HEAP_DUMP_BUSY', 'HEAP_DUMP_MEMORY'],
  }),
  'GET /cpuprofile': op('recordCpuProfile', 'A CPU profile of the main thread', {
    parameters: { seconds: ['How long to record.', 'integer 1..60'] },
    replies: FILE,
    refusals: ['CROSS_SITE', 'CPU_PROFILE_BUSY', 'CPU_PROFILE_SECONDS'],
  }),

  'GET /openapi': op('readOpenApi', 'This document', { replies: { 200: ['OpenAPI 3.1.', OPENAPI] } }),
  'GET /openapi/{door}': op('readDoorApi', 'The part of one door, or the schema of the GraphQL door', {
    parameters: { door: 'The name of a door: rest, management, webhook, graphql.' },
    replies: {
      200: [
        'OpenAPI 3.1; for GraphQL the schema definition language.',
        { ...OPENAPI, 'text/plain; charset=utf-8': schemaOf('text') },
      ],
    },
    refusals: ['NOT_FOUND'],
  }),
  'GET /docs': op('readDocs', 'A page of all this for browsers', {
    replies: { 200: ['HTML.', { 'text/html; charset=utf-8': schemaOf('text') }] },
  }),
});

/** Members that a property has in every source. */
const property: Readonly<Record<string, Shape>> = { 'value?': 'any', 'origin?': 'text: Where it was set.' };

const schemas: Readonly<Record<string, Shape>> = {
  ManagementError: { status: 'integer', error: 'text: The phrase of the status.', 'message?': 'text' },
  HealthStatus: 'one of UP DOWN OUT_OF_SERVICE UNKNOWN',
  Health: {
    status: '#HealthStatus',
    'components?': { '*': '#Health' },
    'details?': 'object',
    'groups?': ['text'],
  },
  Links: { _links: { '*': { href: 'text', templated: 'boolean' } } },
  Property: property,
  PropertySource: {
    name: 'text',
    properties: { '*': { ...property, 'overriddenBy?': 'text: The stronger source that sets it too.' } },
  },
  Logger: {
    'configuredLevel?': 'text',
    effectiveLevel: 'text',
    'revertsAt?': 'time: When a temporary level ends.',
  },
  ConfigProps: {
    contexts: { '*': { beans: { '*': { prefix: 'text', properties: 'object', inputs: 'object' } } } },
  },
};

/** The schemas that several endpoints share. */
const managementSchemas = Object.fromEntries(
  Object.entries(schemas).map(([name, shape]) => [name, schemaOf(shape)]),
);
