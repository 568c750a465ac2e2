import {
  type ApiOperation,
  type ApiPath,
  listOf,
  mapOf,
  named,
  object,
  oneOfTexts,
  pathParameter,
  queryParameter,
  type Schema,
} from '../../http/openapi.ts';
import { MEDIA_TYPES } from '../management-errors.ts';

/**
 * A schema in short. A text names types, separated by `|`, or a schema of the document (`#Health`), and may have a
 * description (`integer: Since the start.`); `one of UP DOWN` and `integer 1..60` restrict it. An object has members, optional ones with `?` after their names; a list
 * of one is a list, and an object with the one member `*` has arbitrary names. A function returns any other schema.
 */
export type Shape = string | readonly [Shape] | { readonly [member: string]: Shape } | (() => Schema);

/** Types that JSON Schema names differently, or restricts. */
const TYPES: Readonly<Record<string, Schema>> = {
  any: {},
  text: { type: 'string' },
  time: { type: 'string', format: 'date-time' },
  ratio: { type: 'number', minimum: 0 },
};

/** The schema of a shape. */
export function schemaOf(shape: Shape): Schema {
  if (typeof shape === 'function') return shape();
  if (Array.isArray(shape)) return listOf(schemaOf(shape[0]));
  if (typeof shape === 'string') return textSchema(shape);
  const { '*': values } = shape as { readonly [member: string]: Shape };
  if (values !== undefined) return mapOf(schemaOf(values));
  return object(Object.fromEntries(Object.entries(shape).map(([name, each]) => [name, schemaOf(each)])));
}

function textSchema(shape: string): Schema {
  const [, types = '', description] = /^([^:]*)(?:: (.*))?$/.exec(shape) ?? [];
  if (types.startsWith('#')) return named(types.slice(1));
  const [, values] = /^one of (.*)/.exec(types) ?? [];
  if (values !== undefined) return oneOfTexts(values.split(' '));
  const [, type, minimum, maximum] = /^(.*) (\d+)\.\.(\d*)$/.exec(types) ?? [];
  if (type !== undefined)
    return { type, minimum: Number(minimum), ...(maximum && { maximum: Number(maximum) }) };
  const schemas = types.split('|').map((type): Schema => TYPES[type] ?? { type });
  const [first] = schemas;
  const several = schemas.length > 1 && { type: schemas.map(({ type }) => type) };
  return { ...first, ...several, ...(description !== undefined && { description }) };
}

/** The content of a JSON reply under each media type of the door. */
export function json(shape: Shape): Readonly<Record<string, Schema>> {
  return Object.fromEntries(MEDIA_TYPES.map((type) => [type, schemaOf(shape)]));
}

interface Details extends Pick<ApiOperation, 'body' | 'refusals'> {
  /** The JSON of a 200. */
  readonly reply?: Shape;
  /** Other replies by status, each with its content. */
  readonly replies?: Readonly<
    Record<number, readonly [description: string, content?: Readonly<Record<string, Schema>>]>
  >;
  /** By name; those that are not in the path are of the query. A text is the description of a text. */
  readonly parameters?: Readonly<Record<string, string | readonly [description: string, schema: Shape]>>;
}

type Operation = (path: string) => ApiOperation;

/** An operation by its id, with a line about it. */
export function op(id: string, summary: string, details: Details): Operation {
  const { reply = {}, replies = { 200: [summary, json(reply)] }, parameters, body, refusals } = details;
  return (path) => ({
    id,
    summary,
    ...(parameters && {
      parameters: Object.entries(parameters).map(([name, parameter]) => {
        const [description, shape] = typeof parameter === 'string' ? [parameter, 'text'] : parameter;
        const make = path.includes(`{${name}}`) ? pathParameter : queryParameter;
        return make(name, description, schemaOf(shape));
      }),
    }),
    replies: Object.fromEntries(
      Object.entries(replies).map(([status, [description, content]]) => [
        status,
        { description, ...(content && { content }) },
      ]),
    ),
    ...(body && { body }),
    ...(refusals && { refusals }),
  });
}

/** The paths of a table by method and path: `GET /loggers/{name}`. */
export function pathsOf(table: Readonly<Record<string, Operation>>): Readonly<Record<string, ApiPath>> {
  const paths: Record<string, Record<string, ApiOperation>> = {};
  for (const [key, operation] of Object.entries(table)) {
    const [method = '', path = ''] = key.split(' ');
    paths[path] ??= {};
    paths[path][method.toLowerCase()] = operation(path);
  }
  return paths;
}
