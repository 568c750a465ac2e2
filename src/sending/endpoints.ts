import { randomBytes } from 'node:crypto';
import * as v from 'valibot';
import { pointerField, readObject, textField, toggleField, wholeField } from '../config/schema/fields.ts';
import { isRecord } from '../core/json.ts';
import { headerName } from '../core/redaction.ts';
import { rateField } from '../inbox/config.ts';
import { isPrivateHost } from '../inbox/forward/addresses.ts';
import { secretProblem } from '../signatures/sources.ts';
import { compileFilter, FilterError, isTypePattern } from './filters.ts';
import type { EndpointSecret, EndpointSettings, StoredEndpoint } from './store.ts';

/** The name of a tenant: at most 64 letters, digits, `_`, `-` and `.`. */
export const TENANT = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** Secrets that an endpoint keeps beside its current one. */
const MAX_SECRETS = 4;
/** Largest settings of an endpoint in bytes, as JSON. */
const MAX_SETTINGS = 16 * 1024;

const URL_EXPECTED = 'must be an http or https URL without a user name in it, of at most 2,000 characters';
const TYPES = 'must be an array of at most 100 event types such as "invoice.paid", "invoice.*" or "*"';
const CHANNELS = 'must be an array of at most 100 texts of 1 to 128 characters';
const HEADERS = 'must be an object of at most 20 headers; those that Portico sets itself cannot be set';
const VALUE = /^[\t\x20-\x7e]*$/;
/** Headers that Portico or the connection sets. */
const OWN_HEADERS =
  /^(?:content-type|content-length|host|connection|transfer-encoding|user-agent|webhook-.*|traceparent|tracestate|expect|te|trailer|upgrade|keep-alive|proxy-.*)$/;

const endpointSchema = v.object(
  {
    url: v.pipe(v.string(URL_EXPECTED), v.maxLength(2_000, URL_EXPECTED), v.check(isHttpUrl, URL_EXPECTED)),
    description: v.optional(textField(/^[^\p{Cc}]{0,500}$/u, 'must be a text of at most 500 characters')),
    types: v.optional(
      wholeField(
        v.pipe(v.array(v.pipe(v.string(), v.check(isTypePattern))), v.minLength(1), v.maxLength(100)),
        TYPES,
      ),
    ),
    channels: v.optional(
      wholeField(
        v.pipe(
          v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(128))),
          v.minLength(1),
          v.maxLength(100),
        ),
        CHANNELS,
      ),
    ),
    filter: v.optional(
      v.custom<Readonly<Record<string, unknown>>>(isRecord, 'must be an object of conditions'),
    ),
    rate: v.optional(
      v.pipe(
        v.string('must be like "10/s"'),
        v.check((text) => v.is(rateField, text), 'must be like "10/s", "100/m" or "500/h"'),
      ),
    ),
    headers: v.optional(v.custom<Readonly<Record<string, string>>>(isHeaders, HEADERS)),
    order: v.optional(
      v.pipe(
        v.string('must be a JSON pointer such as /data/id'),
        v.check((text) => v.is(pointerField(''), text), 'must be a JSON pointer such as /data/id'),
      ),
    ),
    transform: v.optional(v.string('must be the name of a transformation of the configuration')),
    enabled: v.optional(toggleField),
    secret: v.optional(v.string('must be a secret such as whsec_...')),
  },
  'must be an object with a url',
);

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text);
  return (
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    url.username === '' &&
    url.password === ''
  );
}

function isHeaders(value: unknown): value is Readonly<Record<string, string>> {
  if (!isRecord(value) || Object.keys(value).length > 20) return false;
  return Object.entries(value).every(
    ([name, text]) =>
      headerName(name) !== undefined &&
      !OWN_HEADERS.test(name.toLowerCase()) &&
      typeof text === 'string' &&
      text.length <= 1_000 &&
      VALUE.test(text),
  );
}

/** What a request says of an endpoint. */
export interface GivenEndpoint {
  readonly settings: EndpointSettings;
  /** Absent: unchanged, or enabled for a new one. */
  readonly enabled?: boolean;
  /** Absent: a new one is made. */
  readonly secret?: string;
}

interface EndpointRules {
  /** Whether addresses may be private. */
  readonly allowPrivate: boolean;
  /** The names of transformations of the configuration. */
  readonly transforms: ReadonlySet<string>;
}

/**
 * Reads an endpoint from a request, or a merge patch (RFC 7396) of `before`. Appends one line per problem to `problems`;
 * with problems the result is undefined.
 */
export function readEndpoint(
  given: unknown,
  { allowPrivate, transforms }: EndpointRules,
  problems: string[],
  before?: EndpointSettings,
): GivenEndpoint | undefined {
  const merged = before === undefined || !isRecord(given) ? given : withoutNulls({ ...before, ...given });
  const found: string[] = [];
  const read = readObject(endpointSchema, { value: merged, path: '' }, found);
  // The members are at the top of the body.
  problems.push(...found.map((problem) => problem.replace(/^[. ]/, '')));
  if (read === undefined) return undefined;
  const { enabled, secret, ...settings } = read;
  const count = problems.length;
  const { hostname } = new URL(settings.url);
  if (!allowPrivate && isPrivateHost(hostname)) problems.push(`url is the private address ${hostname}`);
  if (settings.transform !== undefined && !transforms.has(settings.transform))
    problems.push(
      `transform must be one of ${[...transforms].join(', ') || 'none: the configuration has no transformation'}`,
    );
  try {
    if (settings.filter !== undefined) compileFilter(settings.filter);
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    problems.push(error.message);
  }
  const problem = secret === undefined ? undefined : secretProblem('standard', secret);
  if (problem !== undefined) problems.push(`secret ${problem}`);
  if (Buffer.byteLength(JSON.stringify(settings)) > MAX_SETTINGS)
    problems.push(`the endpoint has more than ${MAX_SETTINGS} bytes`);
  if (problems.length > count) return undefined;
  return {
    settings: settings as EndpointSettings,
    ...(enabled !== undefined && { enabled }),
    ...(secret !== undefined && { secret }),
  };
}

function withoutNulls(patch: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== null));
}

/** What a decision of its owner or an operator makes of an endpoint; undefined leaves it as it is. */
export function enabledAs({ disabled, failingSince }: StoredEndpoint, enabled: boolean | undefined) {
  if (enabled === undefined || enabled === (disabled === null)) return { disabled, failingSince };
  // An endpoint that is enabled has its time again.
  return enabled ? { disabled: null, failingSince: null } : { disabled: 'manual' as const, failingSince };
}

/** A new secret of Standard Webhooks: 32 random bytes. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** A new id of an endpoint. */
export function newEndpointId(): string {
  return `ep_${randomBytes(12).toString('hex')}`;
}

/**
 * The secrets after a rotation at `now`: the new one signs, and the previous ones still do until `now + overlap`, all in
 * milliseconds.
 */
export function rotated(
  secrets: readonly EndpointSecret[],
  secret: string,
  now: number,
  overlap: number,
): readonly EndpointSecret[] {
  const older = validSecrets(secrets, now).map((each) => ({
    secret: each.secret,
    until: Math.min(each.until ?? Number.POSITIVE_INFINITY, now + overlap),
  }));
  return [{ secret, until: null }, ...(overlap === 0 ? [] : older.slice(0, MAX_SECRETS))];
}

/** The secrets that sign at `now`. */
export function validSecrets(secrets: readonly EndpointSecret[], now: number): readonly EndpointSecret[] {
  return secrets.filter(({ until }) => until === null || until > now);
}
