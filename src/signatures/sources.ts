import type { InferOutput } from 'valibot';
import * as v from 'valibot';
import { type Given, itemsOf, readObject, sluggedOf } from '../config/schema/fields.ts';
import { resolveSecret, type SecretResolver, secretSchema } from '../config/secrets.ts';
import { isRecord, type JsonPointer, valueAt } from '../core/json.ts';
import { isSecretHeader } from '../core/redaction.ts';
import { type SchemeName, schemelessSchema, schemeNames, sourceSchemas } from './config.ts';
import {
  bodyAlone,
  github,
  hmac,
  readTemplate,
  slack,
  stripe,
  textSecretProblem,
  timestampAndBody,
  token,
} from './hmac.ts';
import type { AnyScheme, RequestHeaders } from './schemes.ts';
import { DEFAULT_TOLERANCE, senderScheme, senderSecretProblem } from './senders.ts';
import { standard, standardKeyProblem } from './standard.ts';

/** A location in a request. */
export type Place =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'pointer'; readonly pointer: JsonPointer }
  /** The first of these fields that the body has; a prefix and a dot precede its text. */
  | { readonly kind: 'fields'; readonly fields: readonly (readonly [name: string, prefix: string])[] };

/** The locations of event, data and deduplication key in a source's requests. */
export interface SourceLayout {
  readonly event: Place;
  /** Portico's names of events by the sender's names; other events keep the sender's name. */
  readonly events: ReadonlyMap<string, string>;
  readonly data: JsonPointer;
  /** Where the deduplication key is, equal in all attempts for one event; undefined for none. */
  readonly dedup: Place | undefined;
  /** Where the body has the time of sending, in milliseconds; undefined if it has none. */
  readonly sentAt?: JsonPointer;
  /** Whether its sender sends forms. */
  readonly isForm?: boolean;
}

/** A configured sender of webhooks, validated. */
export interface SourceSettings extends SourceLayout {
  readonly name: string;
  readonly scheme: SchemeName;
  /** The scheme with its parameters. */
  readonly signature: AnyScheme;
  /** The accepted secrets, at least one. */
  readonly secrets: readonly string[];
  /** The headers that its deliveries keep, in lower case. */
  readonly headers: readonly string[];
  /** Maximum body size in bytes; undefined for the larger of the usual sender's maximum and the door's. */
  readonly maxBodyBytes: number | undefined;
}

export function valueAtPlace(place: Place, headers: RequestHeaders, body: unknown): unknown {
  if (place.kind === 'header') return headers[place.name];
  if (place.kind === 'pointer') return valueAt(body, place.pointer);
  for (const [name, prefix] of place.fields) {
    const value = valueAt(body, [name]);
    if (typeof value === 'string' && value !== '') return prefix === '' ? value : `${prefix}.${value}`;
  }
  return undefined;
}

const TEMPLATE = 'must be ASCII text with {body} once, and {timestamp} and {header:NAME} as needed';

const templateField = v.pipe(
  v.string(TEMPLATE),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const template = readTemplate(dataset.value);
    if (template === undefined) addIssue({ message: TEMPLATE });
    return template ?? NEVER;
  }),
);

const { entries, message } = sourceSchemas.hmac;

/** The scheme hmac with its template parsed. Rules about two fields need both to be valid. */
const hmacSchema = v.pipe(
  v.object({ ...entries, template: v.optional(templateField) }, message),
  v.forward(
    v.partialCheck(
      [['tolerance'], ['timestampHeader']],
      ({ tolerance, timestampHeader }) => tolerance === undefined || timestampHeader !== undefined,
      'needs timestampHeader, the header with the time of a request',
    ),
    ['tolerance'],
  ),
  v.forward(
    v.partialCheck(
      [['template'], ['timestampHeader']],
      ({ template, timestampHeader }) => timestampHeader === undefined || template?.usesTimestamp !== false,
      'must have {timestamp}: a time that is not signed proves nothing',
    ),
    ['template'],
  ),
  v.forward(
    v.partialCheck(
      [['template'], ['timestampHeader']],
      ({ template, timestampHeader }) => timestampHeader !== undefined || template?.usesTimestamp !== true,
      'has {timestamp}, which needs timestampHeader',
    ),
    ['template'],
  ),
);

const schemas = { ...sourceSchemas, hmac: hmacSchema };

type ReadSource = InferOutput<(typeof schemas)[SchemeName]>;

/** Reads `webhook.sources`, named `path`. Appends one line per problem to `problems`. */
export function readSources(
  value: unknown,
  path: string,
  resolve: SecretResolver,
  problems: string[],
): readonly SourceSettings[] {
  return sluggedOf({ value, path }, 'sources', problems).flatMap((entry) => {
    const scheme = schemeOf(entry);
    const source =
      scheme === undefined
        ? void readObject(schemelessSchema, entry, problems)
        : readObject(schemas[scheme], entry, problems);
    const secrets = readSecrets(entry, scheme, resolve, problems);
    if (source === undefined) return [];
    if ('header' in source && source.headers?.includes(source.header)) {
      problems.push(`${entry.path}.headers must not have ${source.header}, the header with the secret`);
    }
    const layout = layoutOf(source);
    return {
      name: entry.name,
      scheme: source.scheme,
      signature: signatureOf(source),
      secrets,
      maxBodyBytes: source.maxBodyBytes,
      headers: keptHeadersOf(source, layout),
      ...layout,
    };
  });
}

function schemeOf({ value }: Given): SchemeName | undefined {
  const given = isRecord(value) && Object.hasOwn(value, 'scheme') ? value.scheme : undefined;
  return schemeNames.find((name) => name === given);
}

/** The scheme with its parameters and their defaults. */
function signatureOf(source: ReadSource): AnyScheme {
  const given = 'tolerance' in source ? source.tolerance : undefined;
  const tolerance = given ?? DEFAULT_TOLERANCE;
  switch (source.scheme) {
    case 'standard':
      return standard({ headerPrefix: source.headerPrefix, tolerance });
    case 'github':
      return github;
    case 'stripe':
      return stripe(tolerance);
    case 'slack':
      return slack(tolerance);
    case 'hmac': {
      const template = source.template ?? (source.timestampHeader ? timestampAndBody : bodyAlone);
      return hmac({ ...source, timestampHeader: source.timestampHeader, tolerance, template: template.fill });
    }
    case 'token':
      return token(source.header);
    default:
      return senderScheme(source.scheme, {
        tolerance: given,
        url: 'url' in source ? source.url : undefined,
      });
  }
}

function layoutOf(source: ReadSource): SourceLayout {
  const { scheme, event, events, data, dedup } = source;
  const layout = defaultLayout(scheme, 'headerPrefix' in source ? source.headerPrefix : undefined);
  return {
    event: event ?? layout.event,
    events: new Map([...layout.events, ...(events ?? [])]),
    ...(layout.sentAt !== undefined && { sentAt: layout.sentAt }),
    ...(layout.isForm !== undefined && { isForm: layout.isForm }),
    data: data ?? layout.data,
    dedup: dedup === false ? undefined : (dedup ?? layout.dedup),
  };
}

interface ReadDelivery {
  readonly kind: 'delivery';
  /** The event's name in Portico; null if the request names none. */
  readonly event: string | null;
  /** The sender's name if the source renames the event; otherwise null. */
  readonly senderEvent: string | null;
  readonly pointer: JsonPointer;
  /** The deduplication key, equal for requests that deliver the same event; null without one. */
  readonly dedupKey: string | null;
}

/** A request that only tries the address; it expects a 200 with `answer` as body, or a 204 if that is empty. */
interface Challenge {
  readonly kind: 'challenge';
  readonly answer: string;
  /** Whether the answer is JSON. */
  readonly isJson?: true;
}

/** Reads a verified request; `body` is its parsed body. */
export function readDelivery(
  source: SourceLayout & Pick<SourceSettings, 'scheme'>,
  headers: RequestHeaders,
  body: unknown,
): ReadDelivery | Challenge {
  if (source.scheme === 'slack' && valueAt(body, ['type']) === 'url_verification') {
    const answer = valueAt(body, ['challenge']);
    if (typeof answer === 'string') return { kind: 'challenge', answer };
  }
  if (source.scheme === 'discord') {
    const type = valueAt(body, ['type']);
    // The ping of webhook events, and that of interactions.
    if (type === 0) return { kind: 'challenge', answer: '' };
    if (type === 1 && valueAt(body, ['event']) === undefined)
      return { kind: 'challenge', answer: '{"type":1}', isJson: true };
  }
  const dedupKey = dedupKeyOf(source, headers, body);
  const names = namesOf(source, valueAtPlace(source.event, headers, body));
  const other = names.event === null && source.scheme === 'slack' ? slackEvent(body) : undefined;
  if (other !== undefined) return { kind: 'delivery', ...namesOf(source, other), pointer: [], dedupKey };
  return { kind: 'delivery', ...names, pointer: source.data, dedupKey };
}

/** Slack also sends interactions, which have a type, and commands; the whole body is their data. */
function slackEvent(body: unknown): unknown {
  return valueAt(body, ['command']) ?? valueAt(body, ['type']);
}

function namesOf({ events }: SourceLayout, name: unknown): Pick<ReadDelivery, 'event' | 'senderEvent'> {
  if (typeof name !== 'string' || name === '') return { event: null, senderEvent: null };
  const event = events.get(name) ?? name;
  return { event, senderEvent: event === name ? null : name };
}

function dedupKeyOf({ dedup }: SourceLayout, headers: RequestHeaders, body: unknown): string | null {
  if (dedup === undefined) return null;
  const value = valueAtPlace(dedup, headers, body);
  const key = typeof value === 'number' ? String(value) : value;
  return typeof key === 'string' && key !== '' ? key : null;
}

/**
 * The secrets of a source or forward address, with references resolved. Appends problems by path, never
 * quoting a secret; skips values that the schema refuses. Without a scheme, secrets are resolved but not
 * checked.
 */
export function readSecrets(
  owner: Given,
  scheme: SchemeName | undefined,
  resolve: SecretResolver,
  problems: string[],
): readonly string[] {
  const value = isRecord(owner.value) ? owner.value.secrets : undefined;
  const given = { value, path: `${owner.path}.secrets` };
  const entries = Array.isArray(value) ? itemsOf(given, problems) : [given];
  return entries.flatMap((entry) => {
    if (!v.is(secretSchema, entry.value)) return [];
    const found = resolveSecret(v.parse(secretSchema, entry.value), entry.path, resolve);
    if ('problem' in found) {
      problems.push(found.problem);
      return [];
    }
    const problem = scheme === undefined ? undefined : secretProblem(scheme, found.text);
    if (problem !== undefined) problems.push(`${found.name} ${problem}`);
    return problem === undefined ? found.text : [];
  });
}

/** What is wrong with a secret of a scheme, to follow its name; undefined if nothing is. */
export function secretProblem(scheme: SchemeName, secret: string): string | undefined {
  switch (scheme) {
    case 'standard':
      return standardKeyProblem(secret);
    case 'github':
    case 'stripe':
    case 'slack':
    case 'hmac':
    case 'token':
      return textSecretProblem(secret);
    default:
      return senderSecretProblem(scheme, secret);
  }
}

const header = (name: string): Place => ({ kind: 'header', name });
const pointer = (...tokens: string[]): Place => ({ kind: 'pointer', pointer: tokens });
const fields = (...names: (readonly [string, string])[]): Place => ({ kind: 'fields', fields: names });
const none: ReadonlyMap<string, string> = new Map();

/** The layout of the contract's body (CONTRACT.md#webhook-body). */
const contract: SourceLayout = {
  event: pointer('event'),
  events: none,
  data: ['data'],
  dedup: header('idempotency-key'),
};

/** The layout of each scheme's usual sender. */
const layouts: Readonly<Record<SchemeName, SourceLayout>> = {
  standard: { event: pointer('type'), events: none, data: ['data'], dedup: undefined },
  github: {
    event: header('x-github-event'),
    events: new Map([['push', 'new_commit']]),
    data: [],
    dedup: header('x-github-delivery'),
  },
  stripe: {
    event: pointer('type'),
    // Stripe may send several of these events for one payment: subscribe to one of them there, or map them
    // here. checkout.session.completed is not listed, since it may come before the payment.
    events: new Map(
      ['payment_intent.succeeded', 'charge.succeeded', 'invoice.paid', 'invoice.payment_succeeded'].map(
        (name) => [name, 'payment_received'] as const,
      ),
    ),
    data: ['data'],
    dedup: pointer('id'),
  },
  slack: { event: pointer('event', 'type'), events: none, data: ['event'], dedup: pointer('event_id') },
  shopify: {
    event: header('x-shopify-topic'),
    events: none,
    data: [],
    // Several subscriptions may share the id of an event.
    dedup: header('x-shopify-webhook-id'),
  },
  gitlab: {
    event: fields(['object_kind', ''], ['event_name', '']),
    events: none,
    data: [],
    dedup: header('idempotency-key'),
  },
  paypal: { event: pointer('event_type'), events: none, data: ['resource'], dedup: pointer('id') },
  twilio: {
    event: fields(
      ['MessageStatus', 'message'],
      ['SmsStatus', 'message'],
      ['CallStatus', 'call'],
      ['EventType', ''],
    ),
    events: none,
    data: [],
    dedup: header('i-twilio-idempotency-token'),
    isForm: true,
  },
  linear: {
    event: pointer('type'),
    events: none,
    data: [],
    dedup: header('linear-delivery'),
    sentAt: ['webhookTimestamp'],
  },
  clerk: { event: pointer('type'), events: none, data: ['data'], dedup: header('svix-id') },
  resend: { event: pointer('type'), events: none, data: ['data'], dedup: header('svix-id') },
  // Discord sends no id that repetitions share.
  discord: { event: pointer('event', 'type'), events: none, data: ['event', 'data'], dedup: undefined },
  hmac: contract,
  token: contract,
};

/** The events that sources of a scheme rename by default: Portico's name with the sender's names. */
export function renamedEvents(): readonly {
  readonly scheme: SchemeName;
  readonly event: string;
  readonly names: readonly string[];
}[] {
  return (Object.keys(layouts) as SchemeName[]).flatMap((scheme) => {
    const byEvent = Map.groupBy(layouts[scheme].events, ([, event]) => event);
    return Array.from(byEvent, ([event, renamed]) => ({
      scheme,
      event,
      names: renamed.map(([name]) => name),
    }));
  });
}

/** The default layout of a source; `headerPrefix` is the parameter of the scheme standard. */
export function defaultLayout(scheme: SchemeName, headerPrefix = 'webhook'): SourceLayout {
  const layout = layouts[scheme];
  return scheme === 'standard' ? { ...layout, dedup: header(`${headerPrefix}-id`) } : layout;
}

/** Headers of known senders with events, ids and times. Stripe has all of these in the body. */
const KNOWN = [
  // GitHub
  'x-github-event',
  'x-github-delivery',
  'x-github-hook-id',
  'x-github-hook-installation-target-type',
  'x-github-hook-installation-target-id',
  // Standard Webhooks, and Svix
  'webhook-id',
  'webhook-timestamp',
  'svix-id',
  'svix-timestamp',
  // Shopify
  'x-shopify-topic',
  'x-shopify-shop-domain',
  'x-shopify-api-version',
  'x-shopify-webhook-id',
  'x-shopify-event-id',
  'x-shopify-triggered-at',
  'x-shopify-test',
  // GitLab
  'x-gitlab-event',
  'x-gitlab-event-uuid',
  'x-gitlab-webhook-uuid',
  'x-gitlab-instance',
  'idempotency-key',
  // Linear
  'linear-delivery',
  'linear-event',
  // PayPal
  'paypal-transmission-id',
  'paypal-transmission-time',
  // Slack
  'x-slack-request-timestamp',
  'x-slack-retry-num',
  'x-slack-retry-reason',
] as const;

/** The settings, besides the layout, that decide which headers a source keeps. */
interface HeaderOptions {
  /** The configured headers; undefined if none are configured. */
  readonly headers?: readonly string[] | undefined;
  /** The header with the signature or the token, if its name is configured. */
  readonly header?: string;
  readonly timestampHeader?: string | undefined;
  readonly headerPrefix?: string;
}

/** The headers that deliveries of a source keep: the configured ones, or the usual ones. */
function keptHeadersOf(options: HeaderOptions, { event, dedup }: SourceLayout): readonly string[] {
  const { headers, header, timestampHeader, headerPrefix } = options;
  if (headers !== undefined) return [...new Set(headers)];
  const own = [event, dedup].flatMap((place) => (place?.kind === 'header' ? place.name : []));
  if (timestampHeader !== undefined) own.push(timestampHeader);
  if (headerPrefix !== undefined) own.push(`${headerPrefix}-id`, `${headerPrefix}-timestamp`);
  return [...new Set([...own, ...KNOWN])].filter((name) => name !== header && !isSecretHeader(name));
}
