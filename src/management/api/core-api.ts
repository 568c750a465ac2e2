import { pathParameter, queryParameter } from '../../http/openapi/api.ts';
import { listOf, mapOf, named, object, oneOfTexts, text } from '../../http/openapi/schema.ts';
import { type EndpointPaths, json, read } from './shapes.ts';

const health = (id: string, summary: string) => ({
  ...read(id, summary, named('Health')),
  replies: {
    200: { description: 'UP or UNKNOWN.', content: json(named('Health')) },
    503: { description: 'DOWN or OUT_OF_SERVICE.', content: json(named('Health')) },
  },
});

/** The probes, which are outside the base path. */
export const probesApi: EndpointPaths = {
  '/livez': { get: health('readLiveness', 'Whether the process lives') },
  '/readyz': { get: health('readReadiness', 'Whether the service takes requests') },
};

const build = object({ artifact: text(), name: text(), version: text(), 'group?': text(), 'time?': text() });
const number = { type: 'number' } as const;

/** The endpoints that are exposed by default (contract 4.3), and configprops, which is a view of the same. */
export const coreApi: EndpointPaths = {
  '/health': { get: health('readHealth', 'Whether everything that the service needs is well') },
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
      'Where every setting comes from',
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
      'One setting, and what each source says of it',
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
