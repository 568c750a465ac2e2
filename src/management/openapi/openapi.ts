import { type CustomEndpoint, parseParameter } from '../../config/schema/endpoints.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import {
  type ApiOperation,
  type ApiPath,
  type DoorApi,
  integer,
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
} from '../../http/openapi.ts';
import { HISTORY_WINDOWS } from '../../telemetry/history.ts';
import type { Exposed } from '../guard.ts';
import type { DoorOptions } from '../options.ts';
import { type EndpointPaths, json, managementSchemas, read, WRITE_REFUSALS } from './shapes.ts';
import { documentsApi, workApi } from './work-api.ts';

/** The parts of the door that its description needs. */
interface ManagementApiOptions extends Pick<DoorOptions, 'endpoints' | 'users'> {
  /** The base path of the endpoints. */
  readonly prefix: string;
  readonly exposed: readonly Exposed[];
}

/** The management door in OpenAPI: the probes, the index, and every exposed endpoint with its access. */
export function managementApi({ endpoints, users, prefix, exposed }: ManagementApiOptions): DoorApi {
  const known: EndpointPaths = Object.assign(
    {},
    coreApi,
    workApi,
    runtimeApi,
    recentApi,
    documentsApi,
    ...endpoints.map(customApi),
  );
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
      ...probesApi,
      ...(prefix !== '' && { [prefix]: { get: INDEX } }),
      ...Object.fromEntries(described),
    },
  };
}

const INDEX = {
  id: 'listEndpoints',
  summary: 'Links to every exposed endpoint',
  replies: {
    200: {
      description: 'A page for browsers.',
      content: { ...json(named('Links')), 'text/html; charset=utf-8': text() },
    },
  },
} as const;

const health = (id: string, summary: string) => ({
  ...read(id, summary, named('Health')),
  replies: {
    200: { description: 'UP or UNKNOWN.', content: json(named('Health')) },
    503: { description: 'DOWN or OUT_OF_SERVICE.', content: json(named('Health')) },
  },
});

/** The probes, which are outside the base path. */
const probesApi: EndpointPaths = {
  '/livez': { get: health('readLiveness', 'Whether the process is alive') },
  '/readyz': { get: health('readReadiness', 'Whether the service accepts requests') },
};

const build = object({ artifact: text(), name: text(), version: text(), 'group?': text(), 'time?': text() });
const number = { type: 'number' } as const;

/**
 * The endpoints that are exposed by default (CONTRACT.md#management-endpoints), and configprops, another view
 * of the configuration.
 */
const coreApi: EndpointPaths = {
  '/health': { get: health('readHealth', 'The health of the service and its dependencies') },
  '/health/{path}': {
    get: {
      ...health('readHealthPart', 'One component or group, at any depth'),
      parameters: [pathParameter('path', 'The name of a component or a group.', text())],
      refusals: ['NOT_FOUND'],
    },
  },
  '/info': {
    get: read(
      'readInfo',
      'Name, version and commit of the service',
      object({
        'build?': build,
        'git?': object({ 'branch?': text(), commit: object({ id: text(), 'time?': text() }) }),
        'node?': { type: 'object' },
        'os?': { type: 'object' },
        'process?': { type: 'object' },
      }),
    ),
  },
  '/metrics': { get: read('listMeters', 'The names of all meters', object({ names: listOf(text()) })) },
  '/metrics/{requiredMetricName}': {
    get: read(
      'readMeter',
      'The measurements of a meter',
      object({
        name: text(),
        'description?': text(),
        'baseUnit?': text(),
        measurements: listOf(
          object({
            statistic: oneOfTexts(['COUNT', 'TOTAL_TIME', 'MAX', 'VALUE']),
            value: { ...number, type: ['number', 'string'], description: 'A text for NaN and Infinity.' },
          }),
        ),
        availableTags: listOf(object({ tag: text(), values: listOf(text()) })),
      }),
      {
        parameters: [
          pathParameter('requiredMetricName', 'The name of a meter.', text()),
          queryParameter(
            'tag',
            'Restricts the series: `key:value`, several times for several.',
            listOf(text()),
          ),
        ],
        refusals: ['NO_METER', 'WRONG_TAG'],
      },
    ),
  },
  '/env': {
    get: read(
      'readEnvironment',
      'The source of every setting',
      object({
        activeProfiles: listOf(text()),
        defaultProfiles: listOf(text()),
        propertySources: listOf(named('PropertySource')),
      }),
      {
        parameters: [queryParameter('pattern', 'A part of the names to show, in any case.', text())],
        refusals: ['TWO_PATTERNS'],
      },
    ),
  },
  '/env/{toMatch}': {
    get: read(
      'readProperty',
      'One setting, and its value in each source',
      object({
        property: object({ source: text(), value: {} }),
        activeProfiles: listOf(text()),
        defaultProfiles: listOf(text()),
        propertySources: listOf(object({ name: text(), 'property?': named('Property') })),
      }),
      {
        parameters: [pathParameter('toMatch', 'The name of a property.', text())],
        refusals: ['NOT_FOUND'],
      },
    ),
  },
  '/configprops': { get: read('readConfiguration', 'Every option with its value', named('ConfigProps')) },
  '/configprops/{prefix}': {
    get: read('readConfigurationPart', 'The options of some sections', named('ConfigProps'), {
      parameters: [pathParameter('prefix', 'The beginning of the sections.', text())],
      refusals: ['NOT_FOUND'],
    }),
  },
  '/mappings': {
    get: read(
      'readMappings',
      'Every path that each door serves',
      object({ contexts: mapOf(object({ mappings: { type: 'object' } })) }),
    ),
  },
};

const ANSWER: ApiOperation['replies'][number] = {
  description: 'The result: a text, bytes, or any other value as JSON.',
  content: { 'text/plain; charset=utf-8': text(), 'application/octet-stream': {}, ...json({}) },
};

const FAILURES = [
  'NOT_FOUND',
  'PARAMETER',
  'CUSTOM_ENDPOINT_TIMEOUT',
] as const satisfies readonly ErrorCode[];

/** The paths of a custom endpoint. */
function customApi(endpoint: CustomEndpoint): EndpointPaths {
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
      ...(verb === 'write' ? { body: { required: false, content: json({}) } } : {}),
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

/** The endpoints about the recent past of the process. */
const recentApi: EndpointPaths = {
  '/history': {
    get: read(
      'readHistory',
      'The recent past of the process, column by column',
      object({
        window: oneOfTexts([...HISTORY_WINDOWS]),
        interval: integer('Between two times, in milliseconds.'),
        times: listOf(integer('In milliseconds since the epoch.')),
        columns: mapOf(
          object({
            unit: text(),
            values: listOf({ type: ['number', 'null'], description: 'One for each time.' }),
          }),
        ),
      }),
      {
        parameters: [
          queryParameter('window', 'How far back.', oneOfTexts([...HISTORY_WINDOWS])),
          queryParameter('after', 'Only later times, in milliseconds since the epoch.', integer()),
        ],
        refusals: ['HISTORY_QUERY'],
      },
    ),
  },
  '/logtail': {
    get: read(
      'readLogTail',
      'The last entries of the log',
      object({ lines: listOf(object({ number: integer(), entry: { type: 'object' } })) }),
      {
        parameters: [queryParameter('after', 'Only entries after the one with this number.', integer())],
        refusals: ['LOG_NUMBER'],
      },
    ),
  },
  '/requests': {
    get: read(
      'listRequests',
      'The last requests of all doors by route, latest first',
      object({
        requests: listOf(
          object({
            number: integer('Since the start.'),
            door: text(),
            route: text('Its template; `none` for an unknown path.'),
            method: text(),
            status: integer(),
            endedAt: TIME,
            durationMs: number,
          }),
        ),
      }),
    ),
  },
};

const ratio = { type: 'number', minimum: 0 } as const;

function file(id: string, summary: string, more: Partial<ApiOperation>): ApiOperation {
  const content = { 'application/octet-stream': {} };
  return { id, summary, replies: { 200: { description: 'A file.', content } }, ...more };
}

const exposition: Schema = text('The exposition of Prometheus.');

/** The endpoints about the process. */
const runtimeApi: EndpointPaths = {
  '/prometheus': {
    get: {
      id: 'scrape',
      summary: 'All measurements, for Prometheus',
      parameters: [queryParameter('includedNames', 'The names of the meters to show.', listOf(text()))],
      replies: {
        200: {
          description: 'In the format that Accept prefers.',
          content: {
            'text/plain; version=0.0.4; charset=utf-8': exposition,
            'application/openmetrics-text; version=1.0.0; charset=utf-8': exposition,
          },
        },
      },
    },
  },
  '/eventloop': {
    get: read(
      'readEventLoop',
      'How busy the event loop is',
      object({
        window: text('ISO 8601.'),
        utilization: object({ sinceStart: ratio, window: ratio }),
        delay: object({ unit: { const: 'milliseconds' }, min: ratio, mean: ratio, max: ratio }),
      }),
    ),
  },
  '/threaddump': {
    get: {
      id: 'readThreads',
      summary: 'The stacks of the main thread and every worker',
      replies: {
        200: {
          description: 'In the format that Accept prefers.',
          content: {
            ...json(
              object({
                threads: listOf(
                  object({
                    threadName: text(),
                    threadId: integer(),
                    threadState: text(),
                    stackTrace: listOf(mapOf({})),
                  }),
                ),
              }),
            ),
            'text/plain;charset=UTF-8': text(),
          },
        },
      },
    },
  },
  '/heapdump': {
    get: file('dumpHeap', 'The heap, secrets included', {
      refusals: ['CROSS_SITE', 'HEAP_DUMP_BUSY', 'HEAP_DUMP_MEMORY'],
    }),
  },
  '/cpuprofile': {
    get: file('recordCpuProfile', 'A CPU profile of the main thread', {
      parameters: [
        queryParameter('seconds', 'How long to record.', integer(undefined, { minimum: 1, maximum: 60 })),
      ],
      refusals: ['CROSS_SITE', 'CPU_PROFILE_BUSY', 'CPU_PROFILE_SECONDS'],
    }),
  },
};
