import type { ErrorCode } from '../../core/error-codes.ts';
import {
  type ApiOperation,
  type ApiParameter,
  type ApiPath,
  listOf,
  mapOf,
  named,
  object,
  oneOfTexts,
  type Schema,
  TIME,
  text,
} from '../../http/openapi.ts';
import { MEDIA_TYPES } from '../management-errors.ts';

/** Descriptions of endpoints' paths, relative to the base path. */
export type EndpointPaths = Readonly<Record<string, ApiPath>>;

/** Further parts of a read's description. */
interface Read extends Partial<Pick<ApiOperation, 'description'>> {
  readonly parameters?: readonly ApiParameter[];
  readonly refusals?: readonly ErrorCode[];
}

/** The content of a JSON reply under each media type of the door. */
export function json(schema: Schema): Readonly<Record<string, Schema>> {
  return Object.fromEntries(MEDIA_TYPES.map((type) => [type, schema]));
}

/** A read that answers with JSON. */
export function read(id: string, summary: string, schema: Schema, more: Read = {}): ApiOperation {
  return { id, summary, replies: { 200: { description: summary, content: json(schema) } }, ...more };
}

/** The refusals of a write with a JSON body. */
export const WRITE_REFUSALS = [
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

const property = (more: Readonly<Record<string, Schema>> = {}) =>
  object({ 'value?': {}, 'origin?': text('Where it was set.'), ...more });

/** The schemas that several endpoints share. */
export const managementSchemas: Readonly<Record<string, Schema>> = {
  ManagementError: object({
    status: { type: 'integer' },
    error: text('The phrase of the status.'),
    'message?': text(),
  }),
  HealthStatus: oneOfTexts(['UP', 'DOWN', 'OUT_OF_SERVICE', 'UNKNOWN']),
  Health: object({
    status: named('HealthStatus'),
    'components?': mapOf(named('Health')),
    'details?': { type: 'object' },
    'groups?': listOf(text()),
  }),
  Links: object({ _links: mapOf(object({ href: text(), templated: { type: 'boolean' } })) }),
  Property: property(),
  PropertySource: object({
    name: text(),
    properties: mapOf(property({ 'overriddenBy?': text('The stronger source that sets it too.') })),
  }),
  Logger: object({
    'configuredLevel?': text(),
    effectiveLevel: text(),
    'revertsAt?': { ...TIME, description: 'When a temporary level ends.' },
  }),
  ConfigProps: object({
    contexts: mapOf(
      object({
        beans: mapOf(object({ prefix: text(), properties: { type: 'object' }, inputs: { type: 'object' } })),
      }),
    ),
  }),
};
