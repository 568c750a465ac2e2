import * as v from 'valibot';
import {
  builtInChecks,
  builtInGroups,
  comparableEndpointId,
  endpointIdPattern,
  processStates,
  showDetailsChoices,
  takenEndpoints,
} from '../config/options/endpoint-id.ts';
import {
  functionField,
  type Given,
  itemsOf,
  type Named,
  namedOf,
  readObject,
  textField,
  toggleField,
  type Written,
  wholeNumberField,
} from '../config/schema/fields.ts';
import { isRecord } from '../core/json.ts';
import { describeValue, didYouMean, quote } from '../core/text.ts';
import type { HealthIndicator } from '../telemetry/health.ts';

/** A request to a custom endpoint. */
export interface EndpointRequest {
  /** The segment below the endpoint, by the name that `path` declares; absent if the request has none. */
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
      /** The endpoint's path below the base path: a lower-case letter, then letters, digits, "." and "-". */
      id: textField(
        endpointIdPattern,
        'must begin with a lower-case letter and have only letters, digits, "." and "-"',
      ),
      /** The name of the segment after the id, as in `/<id>/<name>`; `name?` for an optional one. */
      path: v.optional(textField(parameterPattern, `must be ${PARAMETER}`)),
      /**
       * The names of query parameters; `name?` for an optional one. Without a required one, a request gets
       * 400.
       */
      query: v.optional(
        v.custom<readonly string[]>(
          areParameters,
          `must be an array, each item ${PARAMETER}, and no name twice`,
        ),
      ),
      /**
       * GET. A string becomes plain text, bytes stay unchanged, any other value becomes JSON; undefined and
       * null mean 404.
       */
      read: v.optional(functionField<(request: EndpointRequest) => unknown>()),
      /** POST. Like `read`, but undefined and null mean 204. */
      write: v.optional(functionField<(request: EndpointWrite) => unknown>()),
      /** DELETE. Like `read`, but undefined and null mean 204. */
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

/** A custom management endpoint (CONTRACT.md#management-endpoints), with at least one operation. */
export type CustomEndpoint = Fields &
  { [K in Operation]: { readonly [N in K]: NonNullable<Fields[N]> } }[Operation];

/** A declared parameter. */
export interface EndpointParameter {
  readonly name: string;
  readonly optional: boolean;
}

/** Parses `name` or `name?`; undefined for anything else. */
export function parseParameter(text: unknown): EndpointParameter | undefined {
  const [, name, mark] = (typeof text === 'string' && parameterPattern.exec(text)) || [];
  return name === undefined ? undefined : { name, optional: mark === '?' };
}

function areParameters(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const names = Array.from<unknown>(value).map((text) => parseParameter(text)?.name);
  return !names.includes(undefined) && new Set(names).size === names.length;
}

/** Reads `management.endpoints`: an array of custom endpoints, none with a `reserved` id. */
export function readEndpoints(
  given: Given,
  problems: string[],
  reserved = takenEndpoints,
): readonly CustomEndpoint[] {
  const items = itemsOf(given, problems);
  const endpoints = items.flatMap((item) => readObject(endpointSchema, item, problems) ?? []);
  problems.push(...sharedIds(items, reserved));
  // The schema requires an operation, which its type cannot express.
  return endpoints as readonly CustomEndpoint[];
}

/** One line for each id that another endpoint has too. */
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

const DAY = 86_400_000;
const milliseconds = (min: number) =>
  wholeNumberField(min, DAY, `must be a whole number from ${min} to ${DAY} (milliseconds)`);

const checkSchema = v.object(
  {
    check: functionField<HealthIndicator['check']>(),
    /** Timeout in milliseconds, default 5,000; then the check is DOWN and its signal is aborted. */
    timeout: v.optional(milliseconds(1)),
    /**
     * Time for which a result is cached, in milliseconds; default 0: each request runs the check. A stale
     * result is served while the check runs, for up to ten times as long.
     */
    ttl: v.optional(milliseconds(0)),
    /** False keeps its status out of the overall health. Default: true. */
    critical: v.optional(toggleField),
  },
  'must be a function, or an object with a function as its "check"',
);

/** A custom health check and how it runs. */
export type ConfiguredCheck = Written<typeof checkSchema>;

/** A group whose members are among `known`, the names of all checks. */
function groupSchema(known: readonly string[]) {
  const member = v.custom<string>(
    (value) => typeof value === 'string' && (value === '*' || known.includes(value)),
    ({ input }) => {
      const hint = typeof input === 'string' ? didYouMean(input, known) : '';
      return `${describeValue(input)} is no health check${hint}`;
    },
  );
  const include = 'must be an array of health checks, at least one';
  return v.object(
    {
      /** Names of checks, or `*` for all of /health; also `livenessState` and `readinessState`. */
      include: v.pipe(v.array(member, include), v.minLength(1, include)),
      /** Takes precedence over `include`. */
      exclude: v.optional(v.array(member, 'must be an array of health checks')),
      /** Who sees the details. Default: as for /health. */
      showDetails: v.optional(
        v.picklist(showDetailsChoices, `must be one of ${showDetailsChoices.join(', ')}`),
      ),
    },
    'must be an object with include',
  );
}

/** A named set of health checks. */
export type HealthGroupOptions = Written<ReturnType<typeof groupSchema>>;

const reserved: readonly string[] = [...builtInChecks, ...processStates, ...builtInGroups];

/**
 * Reads `management.healthChecks`: for each name a function, or an object with a function and its settings.
 */
export function readHealthChecks(given: Given, problems: string[]): ReadonlyMap<string, ConfiguredCheck> {
  const read = namedOf(given, 'checks by name', problems).flatMap((entry) => {
    const value = typeof entry.value === 'function' ? { check: entry.value } : entry.value;
    const check = readObject(checkSchema, { ...entry, value }, problems);
    const named = isNamed(entry, problems);
    const free = !reserved.includes(entry.name);
    if (!free) problems.push(`${entry.path} has a name that Portico uses itself; rename it`);
    return check !== undefined && named && free ? [[entry.name, check] as const] : [];
  });
  return new Map(read);
}

/** Reads `management.healthGroups`. `checks` is `management.healthChecks`, whose names groups may contain. */
export function readHealthGroups(
  given: Given,
  checks: Given,
  problems: string[],
): ReadonlyMap<string, HealthGroupOptions> {
  const own = isRecord(checks.value) ? Object.keys(checks.value) : [];
  const known = [...builtInChecks, ...processStates, ...own];
  const schema = groupSchema(known);
  const read = namedOf(given, 'groups by name', problems).flatMap((entry) => {
    const named = isNamed(entry, problems);
    const free = !known.includes(entry.name);
    if (!free) problems.push(`${entry.path} has the name of a health check; rename one of them`);
    const group = readObject(schema, entry, problems);
    return group !== undefined && named && free ? [[entry.name, group] as const] : [];
  });
  return new Map(read);
}

function isNamed({ name, path }: Named, problems: string[]): boolean {
  const named = /^[A-Za-z][\w.-]*$/.test(name);
  if (!named) problems.push(`${path} must have a name of letters, digits, ".", "_" and "-"`);
  return named;
}
