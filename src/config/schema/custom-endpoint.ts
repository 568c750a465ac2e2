import * as v from 'valibot';
import { quote } from '../../core/quote.ts';
import { isRecord } from '../../core/record.ts';
import { comparableEndpointId, endpointIdPattern, takenEndpoints } from '../options/endpoint-id.ts';
import { functionField, textField } from './fields.ts';
import { type Given, itemsOf } from './given.ts';
import { readObject, type Written } from './read-object.ts';

/** A request to a custom endpoint. */
export interface EndpointRequest {
  /** The segment below the endpoint, by the name that `path` declares; absent when the request has none. */
  readonly path: Readonly<Record<string, string>>;
  /** The declared query parameters of the request. */
  readonly query: Readonly<Record<string, string>>;
}

/** A request that writes. `body` is its parsed JSON; undefined without a body. */
export interface EndpointWrite extends EndpointRequest {
  readonly body: unknown;
}

const PARAMETER = 'a name of letters, digits and "_", with "?" behind it when it may be left out';
const parameterPattern = /^([A-Za-z]\w*)(\??)$/;

const endpointSchema = v.pipe(
  v.object(
    {
      /** Its path under the base path: a lower-case letter, then letters, digits, "." and "-". */
      id: textField(
        endpointIdPattern,
        'must begin with a lower-case letter and have only letters, digits, "." and "-"',
      ),
      /** The name of a segment below the id, as in `/<id>/<name>`; `name?` for an optional one. */
      path: v.optional(textField(parameterPattern, `must be ${PARAMETER}`)),
      /** The names of query parameters; `name?` for an optional one. A request without a required one gets 400. */
      query: v.optional(
        v.custom<readonly string[]>(
          areParameters,
          `must be an array, each item ${PARAMETER}, and no name twice`,
        ),
      ),
      /**
       * GET. A string is answered as plain text, bytes as they are, any other value as JSON;
       * nothing (undefined or null) is 404.
       */
      read: v.optional(functionField<(request: EndpointRequest) => unknown>()),
      /** POST. As `read`, but nothing is 204. */
      write: v.optional(functionField<(request: EndpointWrite) => unknown>()),
      /** DELETE. As `read`, but nothing is 204. */
      delete: v.optional(functionField<(request: EndpointRequest) => unknown>()),
    },
    'must be an object with id, path, query, read, write, delete',
  ),
  v.partialCheck(
    [['read'], ['write'], ['delete']],
    ({ read, write, delete: remove }) => (read ?? write ?? remove) !== undefined,
    'must have at least one of read, write, delete',
  ),
);

type Fields = Written<typeof endpointSchema>;
type Operation = 'read' | 'write' | 'delete';

/** A custom management endpoint (contract 4.3), with at least one operation. */
export type CustomEndpoint = Fields &
  { [K in Operation]: { readonly [N in K]: NonNullable<Fields[N]> } }[Operation];

/** A declared parameter. */
export interface EndpointParameter {
  readonly name: string;
  readonly optional: boolean;
}

/** Reads `name` or `name?`; undefined when it is neither. */
export function parseParameter(text: unknown): EndpointParameter | undefined {
  const [, name, mark] = (typeof text === 'string' && parameterPattern.exec(text)) || [];
  return name === undefined ? undefined : { name, optional: mark === '?' };
}

function areParameters(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const names = Array.from<unknown>(value).map((text) => parseParameter(text)?.name);
  return !names.includes(undefined) && new Set(names).size === names.length;
}

/** Reads `management.endpoints`: an array of custom endpoints, none with an id of the `reserved` ones. */
export function readEndpoints(
  given: Given,
  problems: string[],
  reserved = takenEndpoints,
): readonly CustomEndpoint[] {
  const items = itemsOf(given, problems);
  const endpoints = items.flatMap((item) => readObject(endpointSchema, item, problems) ?? []);
  problems.push(...sharedIds(items, reserved));
  // The schema checks for an operation, which its type cannot express.
  return endpoints as readonly CustomEndpoint[];
}

/** One line for each id that another endpoint has already. */
function sharedIds(items: readonly Given[], reserved: readonly string[]): readonly string[] {
  const taken = new Map(reserved.map((id) => [comparableEndpointId(id), `the built-in ${id}`]));
  return items.flatMap(({ value, path }) => {
    const id = isRecord(value) && Object.hasOwn(value, 'id') ? value.id : undefined;
    if (typeof id !== 'string' || !endpointIdPattern.test(id)) return [];
    const comparable = comparableEndpointId(id);
    const other = taken.get(comparable);
    if (other !== undefined) {
      return [`${path}.id ${quote(id)} names the same endpoint as ${other}; rename it`];
    }
    taken.set(comparable, `${path}.id`);
    return [];
  });
}
