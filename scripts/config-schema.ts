import * as v from 'valibot';
import { apiTokenSchema } from '../src/access/config.ts';
import { flagOf } from '../src/config/options/option.ts';
import { type CodeKey, codeKeys, isOptionKey, optionOf, settingKeys } from '../src/config/options/options.ts';
import { relationsSchema } from '../src/config/schema/relation-draft.ts';
import { isRecord } from '../src/core/json.ts';
import { deadAlertSchema, forwardSchema, scheduleSchema } from '../src/inbox/config.ts';
import { sendingSchema } from '../src/sending/config.ts';
import { sourceSchemas } from '../src/signatures/config.ts';

/** A JSON Schema, or a part of one. */
type JsonSchema = Readonly<Record<string, unknown>>;

/** What the keys with plain data take. */
const SCHEMAS: Readonly<Partial<Record<CodeKey, v.GenericSchema>>> = {
  relations: v.union([
    relationsSchema,
    v.literal('introspect'),
    v.object({
      introspect: v.object({
        schema: v.optional(v.string()),
        only: v.optional(v.array(v.string())),
        except: v.optional(v.array(v.string())),
      }),
    }),
  ]),
  'api.tokens': v.record(v.string(), apiTokenSchema),
  'webhook.sources': v.record(v.string(), v.union(Object.values(sourceSchemas))),
  'webhook.forward': v.record(v.string(), v.union([v.string(), forwardSchema])),
  'webhook.alerts': v.object({ dead: v.optional(v.union([v.string(), deadAlertSchema])) }),
  'webhook.sending': v.union([v.boolean(), sendingSchema]),
  'webhook.schedules': v.record(v.string(), v.union([v.string(), scheduleSchema])),
};

/**
 * The JSON Schema (draft 7) of a `portico.config.json`, for editors. It takes every configuration that the
 * service takes; what only the service can check, such as the path of a file, it leaves to the service.
 */
export function configSchema(): JsonSchema {
  const root = section();
  root.properties.$schema = { type: 'string', description: 'The schema of this file, for editors.' };
  for (const key of settingKeys) {
    const { kind, default: value, help } = optionOf(key);
    const names = isOptionKey(key) ? ` Flag ${flagOf(key)}, variable ${optionOf(key).env}.` : '';
    const common = { description: `${help}${names}`, ...(value !== undefined && { default: value }) };
    put(root, key, { ...convert(kind.schema), ...common });
  }
  for (const [key, { help, json }] of codeKeys) {
    const schema = SCHEMAS[key];
    if (json && schema !== undefined) put(root, key, { ...convert(schema), description: help });
  }
  return { $schema: 'http://json-schema.org/draft-07/schema#', title: 'Portico', ...root };
}

interface Section {
  readonly type: 'object';
  readonly properties: Record<string, unknown>;
  readonly additionalProperties: false;
}

function section(): Section {
  return { type: 'object', properties: {}, additionalProperties: false };
}

/** Puts a schema into the section of its key. */
function put(root: Section, key: string, schema: JsonSchema): void {
  const path = key.split('.');
  const name = path.pop() ?? key;
  const inner = path.reduce((at, part) => {
    at.properties[part] ??= section();
    return at.properties[part] as Section;
  }, root);
  inner.properties[name] = schema;
}

/** What a schema of valibot takes as JSON; what JSON Schema cannot say, it takes. */
function convert(schema: v.GenericSchema): JsonSchema {
  if (!('pipe' in schema)) return convertType(schema as unknown as Typed);
  const [first, ...items] = schema.pipe as readonly (v.GenericSchema | Item)[];
  let converted = convert(first as v.GenericSchema);
  for (const item of items as readonly Item[]) {
    if (item.type === 'metadata' && isRecord(item.metadata) && 'takes' in item.metadata) {
      return convert(item.metadata.takes as v.GenericSchema);
    }
    // Later items see another value than the one that is written.
    if (item.kind !== 'validation') break;
    converted = { ...converted, ...convertCheck(item) };
  }
  return converted;
}

/** An action of a pipe. */
interface Item {
  readonly kind: string;
  readonly type: string;
  readonly requirement?: unknown;
  readonly metadata?: unknown;
}

function convertCheck({ type, requirement }: Item): JsonSchema {
  switch (type) {
    case 'integer':
      return { type: 'integer' };
    case 'min_value':
      return { minimum: requirement };
    case 'max_value':
      return { maximum: requirement };
    case 'regex':
      return (requirement as RegExp).flags === '' || (requirement as RegExp).flags === 'u'
        ? { pattern: (requirement as RegExp).source }
        : {};
    case 'non_empty':
      return { minLength: 1 };
    case 'min_length':
      return { minItems: requirement };
    default:
      return {};
  }
}

/** The members of valibot's schemas that matter here. */
interface Typed {
  readonly type: string;
  readonly options: readonly unknown[];
  readonly literal: unknown;
  readonly item: v.GenericSchema;
  readonly value: v.GenericSchema;
  readonly wrapped: v.GenericSchema;
  readonly entries: Readonly<Record<string, v.GenericSchema>>;
}

function convertType({ type, options, literal, item, value, wrapped, entries }: Typed): JsonSchema {
  switch (type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return { type };
    case 'picklist':
      return { enum: options };
    case 'literal':
      return { const: literal };
    case 'optional':
      return convert(wrapped);
    case 'union':
      return { anyOf: options.map((option) => convert(option as v.GenericSchema)) };
    case 'array':
      return { type: 'array', items: convert(item) };
    case 'record':
      return { type: 'object', additionalProperties: convert(value) };
    case 'object':
    case 'strict_object': {
      const members = Object.entries(entries);
      return {
        type: 'object',
        properties: Object.fromEntries(members.map(([name, member]) => [name, convert(member)])),
        required: members.flatMap(([name, member]) => (member.type === 'optional' ? [] : [name])),
        additionalProperties: false,
      };
    }
    default:
      return {};
  }
}
