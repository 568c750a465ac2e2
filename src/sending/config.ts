import * as v from 'valibot';
import {
  countField,
  type Given,
  namedOf,
  pathTo,
  readObject,
  toggleField,
  type Written,
  wholeField,
  wholeNumberField,
} from '../config/schema/fields.ts';
import { isRecord, parsePointer } from '../core/json.ts';
import { didYouMean } from '../core/text.ts';
import type { TransformData } from '../inbox/config.ts';
import type { DeliveryTransform } from '../inbox/delivery.ts';
import { checkTransform } from '../inbox/forward/transform.ts';
import { CHANGE_TYPES, type ChangeType, changeName } from '../relations/events.ts';
import type { Relation } from '../relations/relation.ts';
import type { Relations } from '../relations/rows/conditions.ts';
import { claimProblem } from '../relations/rules/readers.ts';
import type { SendingLimits } from './endpoint-target.ts';

/** The first segments of the paths of sending at the REST door. */
export const SENDING_PATHS: readonly string[] = ['events', 'webhooks'];
/** The scopes of these paths. */
export const SENDING_SCOPES: readonly string[] = ['events:write', 'webhooks:read', 'webhooks:write'];

const DAY = 86_400_000;
const TRANSFORMS = 'must be an object of transformations by name';

const EVENTS = `must be an array of ${CHANGE_TYPES.map((type) => `"${type}"`).join(', ')}`;

const CLAIM = 'must be the JSON pointer of a claim, such as "/org"';

const changeSchema = v.object(
  {
    /** The column that names the tenant; a row that names none is not published. */
    tenant: v.optional(v.string('must be the name of a column')),
    /** The claim that is the name of a tenant, as a rule names it: every tenant that may read the row gets the change. */
    reader: v.optional(v.string(CLAIM)),
    /** Default: all. */
    events: v.optional(wholeField(v.array(v.picklist(CHANGE_TYPES)), EVENTS), [...CHANGE_TYPES]),
  },
  'must be an object with a tenant or a reader',
);

const ORIGIN = 'must be an array of origins such as "https://app.example.com"';
const PORTAL_URL = 'must be an http or https URL without query';

const portalSchema = v.object(
  {
    /** The port; 0 for any free one. */
    port: wholeNumberField(0, 65_535, 'must be a port from 0 to 65535'),
    /** The address under which customers reach it. Default: that of the port on this machine. */
    url: v.optional(v.pipe(v.string(PORTAL_URL), v.check(isPlainUrl, PORTAL_URL))),
    /** The origins whose pages may embed it in a frame. Default: none. */
    origins: v.optional(wholeField(v.array(v.pipe(v.string(), v.check(isOrigin))), ORIGIN), []),
    title: v.optional(v.string('must be a text'), 'Webhooks'),
  },
  'must be an object with a port',
);

function isPlainUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
}

function isOrigin(text: string): boolean {
  return URL.parse(text)?.origin === text && /^https?:/.test(text);
}

export const sendingSchema = v.object(
  {
    /** Transformations by name, which endpoints choose. */
    transforms: v.optional(
      v.custom<Readonly<Record<string, DeliveryTransform | TransformData>>>(isRecord, TRANSFORMS),
      {},
    ),
    /** Whether endpoints may have addresses in private networks. Default: false. */
    allowPrivate: v.optional(toggleField, false),
    /** Attempts before an event is given up for an endpoint. Default: 25, over about two days. */
    attempts: v.optional(countField, 25),
    /** Timeout of an attempt, in milliseconds. */
    timeout: v.optional(countField, 15_000),
    /** The longest wait before the second attempt, in milliseconds; it doubles with each attempt. */
    backoff: v.optional(countField, 5_000),
    /** The longest wait between two attempts, in milliseconds. */
    maxBackoff: v.optional(countField, 8 * 3_600_000),
    /** Attempts of each process at a time. */
    concurrency: v.optional(countField, 2_048),
    concurrencyPerEndpoint: v.optional(countField, 32),
    concurrencyPerTenant: v.optional(countField, 512),
    /**
     * The changes of relations that are published, each to the tenant that a column of the row names, or to those that may
     * read the row. Default: none.
     */
    changes: v.optional(v.record(v.string(), changeSchema), {}),
    /** The page for customers and its port. Default: none. */
    portal: v.optional(portalSchema),
    /** Endpoints that have failed for so many days are disabled. */
    disableAfterDays: v.optional(wholeNumberField(1, 365, 'must be a whole number from 1 to 365 (days)'), 5),
  },
  'must be true, or an object',
);

/** How events are sent to the endpoints of customers; `true` for the defaults. */
export type SendingConfig = Written<typeof sendingSchema>;

/** The changes of a relation that are published. */
export interface PublishedChanges {
  /** The column that names the tenant, or the claim that is its name for the read rule. */
  readonly by: { readonly tenant: string } | { readonly reader: string };
  /** The names of the events. */
  readonly events: readonly string[];
  /** The columns that events for the tenant of a column leave out, because a rule says who may read them. */
  readonly hidden: readonly string[];
}

/** The settings of sending. */
export interface SendingSettings {
  readonly allowPrivate: boolean;
  readonly transforms: ReadonlyMap<string, DeliveryTransform | TransformData>;
  readonly changes: ReadonlyMap<string, PublishedChanges>;
  readonly portal: v.InferOutput<typeof portalSchema> | undefined;
  readonly limits: Omit<SendingLimits, 'keptAttempts' | 'maxBodyBytes'>;
}

/**
 * Reads `webhook.sending`; undefined if the service sends nothing to customers. Appends one line per problem to
 * `problems`; with problems the result is incomplete.
 */
export function readSending({ value, path }: Given, problems: string[]): SendingSettings | undefined {
  if (value === undefined || value === false) return undefined;
  const given = { value: value === true ? {} : value, path };
  const read = readObject(sendingSchema, given, problems);
  if (read === undefined) return undefined;
  const { transforms, allowPrivate, portal, changes, disableAfterDays, ...limits } = read;
  const named = namedOf({ value: transforms, path: `${path}.transforms` }, 'transformations', problems);
  for (const { value, path } of named) {
    if (typeof value === 'function') continue;
    if (!isRecord(value)) problems.push(`${path} must be a function, or an object like { body: "/data" }`);
    else checkTransform({ value: { transform: value }, path }, problems);
  }
  return {
    allowPrivate,
    portal,
    changes: new Map(
      Object.entries(changes).flatMap(([name, { tenant, reader, events }]) => {
        const at = pathTo(`${path}.changes`, name);
        const by =
          tenant === undefined ? reader !== undefined && { reader } : reader === undefined && { tenant };
        if (by !== false) return [[name, { by, events, hidden: [] }] as const];
        problems.push(`${at} needs either "tenant", a column, or "reader", a claim`);
        return [];
      }),
    ),
    transforms: new Map(Object.entries(transforms)),
    limits: { ...limits, disableAfter: disableAfterDays * DAY },
  };
}

/**
 * Completes settings with the relations whose changes are published; `path` is that of the settings. Appends one line per
 * problem to `problems`.
 */
export function withPublishedChanges(
  settings: SendingSettings,
  relations: readonly Relation[],
  path: string,
  problems: string[],
): SendingSettings {
  const all = new Map(relations.map((relation) => [relation.name, relation]));
  const changes = [...settings.changes].flatMap(([name, { by, events }]) => {
    const at = pathTo(`${path}.changes`, name);
    const relation = all.get(name);
    const count = problems.length;
    if (relation === undefined) problems.push(`${at} is not a declared relation`);
    else if (!relation.changes)
      problems.push(`${at} records no changes; remove it, or "changes": false of its declaration`);
    else problems.push(...addresseeProblems(all, relation, by, at));
    if (relation === undefined || problems.length > count) return [];
    const names = events.map((type) => changeName(relation, type as ChangeType));
    const hidden = relation.columns.filter(({ rules }) => rules?.read !== undefined).map((each) => each.name);
    return [[name, { by, events: names, hidden }] as const];
  });
  return { ...settings, changes: new Map(changes) };
}

function addresseeProblems(
  all: Relations,
  relation: Relation,
  by: PublishedChanges['by'],
  at: string,
): readonly string[] {
  if ('tenant' in by) {
    const names = relation.columns.map((column) => column.name);
    if (names.includes(by.tenant)) return [];
    return [`${at}.tenant is not a column of ${relation.name}${didYouMean(by.tenant, names)}`];
  }
  const pointer = by.reader.startsWith('/') ? parsePointer(by.reader) : undefined;
  const problem = pointer === undefined ? CLAIM : claimProblem(all, relation, pointer);
  return problem === undefined ? [] : [`${at}.reader ${problem}`];
}
