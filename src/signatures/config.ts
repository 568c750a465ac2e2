import * as v from 'valibot';
import {
  countField,
  pointerField,
  textField,
  type Written,
  wholeField,
  wholeNumberField,
} from '../config/schema/fields.ts';
import { secretsSchema } from '../config/secrets.ts';
import { entriesOf, isRecord } from '../core/json.ts';
import { headerName, isSecretHeader } from '../core/redaction.ts';
import { didYouMean } from '../core/text.ts';

const HEADER = 'must be the name of a header';
const SECRET_HEADER = 'must not be a header with a secret (authorization, cookie, signature, token)';
const PLACE = 'must be { header: NAME } or { pointer: a JSON pointer like /type }';
const POINTER = 'must be a JSON pointer like /data/object, or "" for the whole body';
const EVENTS = 'must be an object of event names, like { push: "new_commit" }';
const EVENT = 'must be the name of an event, and not empty';
const URL_SHAPE = 'must be the http or https URL that the sender was given, without a query';
const SHAPE = 'must be an object with scheme and secrets';

/** The name of a header, converted to lower case. */
const headerField = (message: string) =>
  v.pipe(
    v.string(message),
    v.check((text) => headerName(text) !== undefined, message),
    v.toLowerCase(),
  );

/** The name of a header that may be stored, converted to lower case. */
const keptHeaderField = v.pipe(
  headerField(HEADER),
  v.check((name) => !isSecretHeader(name), SECRET_HEADER),
);

/** The place of a text in a request: a header, or a JSON pointer (RFC 6901) into the body. */
const place = v.union([
  v.pipe(
    v.strictObject({ header: headerField(HEADER) }),
    v.transform(({ header }) => ({ kind: 'header', name: header }) as const),
  ),
  v.pipe(
    v.strictObject({ pointer: pointerField(POINTER) }),
    v.transform(({ pointer }) => ({ kind: 'pointer', pointer }) as const),
  ),
]);

const everySource = {
  /** Each of these is accepted, so that a secret can be rotated. */
  secrets: secretsSchema,
  /** The place of the event's name. */
  event: v.optional(wholeField(place, PLACE)),
  /** Portico's names for events, by the sender's names; other events keep theirs. */
  events: v.optional(
    v.pipe(
      v.custom<Readonly<Record<string, string>>>(isRecord, EVENTS),
      v.transform((names) => new Map(entriesOf(names))),
      v.map(v.string(), v.pipe(v.string(EVENT), v.nonEmpty(EVENT))),
    ),
  ),
  /** The place of the data in the body, as a JSON pointer (RFC 6901). */
  data: v.optional(pointerField(POINTER)),
  /** The place of the id that identifies duplicates; false: no request is a duplicate. */
  dedup: v.optional(wholeField(v.union([v.literal(false), place]), `${PLACE}, or false`)),
  /**
   * The headers that its deliveries keep. Default: the known senders' headers with event names, ids and
   * times.
   */
  headers: v.optional(v.array(keptHeaderField, 'must be an array of header names')),
  /** Maximum body size in bytes. Default: that of the scheme's sender. */
  maxBodyBytes: v.optional(countField),
};

const timed = {
  /**
   * Maximum difference between a request's time and Portico's clock, in seconds. Default: 300; 0 for no
   * limit.
   */
  tolerance: v.optional(
    wholeNumberField(0, Number.MAX_SAFE_INTEGER, 'must be a whole number of seconds, 0 for any time'),
  ),
};

const scheme = <S extends string>(name: S) => ({ scheme: v.literal(name), ...everySource });

/** The schemas of sources, by signature scheme. */
export const sourceSchemas = {
  /** Standard Webhooks: secrets begin with `whsec_` (shared) or `whpk_` (the sender's public key). */
  standard: v.object(
    {
      ...scheme('standard'),
      ...timed,
      /** Prefix of its header names. Default: `webhook`; some senders use `svix`. */
      headerPrefix: v.optional(headerField('must be the first word of header names'), 'webhook'),
    },
    SHAPE,
  ),
  github: v.object(scheme('github'), SHAPE),
  stripe: v.object({ ...scheme('stripe'), ...timed }, SHAPE),
  slack: v.object({ ...scheme('slack'), ...timed }, SHAPE),
  shopify: v.object(scheme('shopify'), SHAPE),
  /** Secrets: secret tokens, or signing tokens, which begin with `whsec_`. */
  gitlab: v.object({ ...scheme('gitlab'), ...timed }, SHAPE),
  /** Secrets: the IDs of the webhook; for tests also a private RSA key in PEM. Default tolerance: no limit. */
  paypal: v.object({ ...scheme('paypal'), ...timed }, SHAPE),
  twilio: v.object(
    {
      ...scheme('twilio'),
      /** The URL that Twilio was given, which it signs; behind a proxy the request does not show it. */
      url: v.pipe(v.string(URL_SHAPE), v.regex(/^https?:\/\/[^?#\s]+$/, URL_SHAPE)),
    },
    SHAPE,
  ),
  /** Default tolerance: 60. */
  linear: v.object({ ...scheme('linear'), ...timed }, SHAPE),
  clerk: v.object({ ...scheme('clerk'), ...timed }, SHAPE),
  resend: v.object({ ...scheme('resend'), ...timed }, SHAPE),
  /** Secrets: the public key of the application in hexadecimal digits, or for tests a private key, `whsk_`. */
  discord: v.object({ ...scheme('discord'), ...timed }, SHAPE),
  /** An HMAC in a header. */
  hmac: v.object(
    {
      ...scheme('hmac'),
      ...timed,
      /** The header with the signature. */
      header: headerField(`${HEADER}: the one with the signature`),
      /** Default: sha256. */
      algorithm: v.optional(
        v.picklist(['sha256', 'sha512', 'sha1'], 'must be one of sha256, sha512, sha1'),
        'sha256',
      ),
      /** Default: hex. */
      encoding: v.optional(v.picklist(['hex', 'base64'], 'must be one of hex, base64'), 'hex'),
      /** Prefix of the signature in the header, such as `sha256=`. Default: none. */
      prefix: v.optional(textField(/^[ -~]*$/, 'must be a text of visible ASCII characters and spaces'), ''),
      /** The header with the time of the request, in whole seconds. Default: none. */
      timestampHeader: v.optional(headerField(HEADER)),
      /**
       * The signed text: `{body}` once, `{timestamp}` and `{header:NAME}`. Default: `{body}`, or
       * `{timestamp}.{body}` with a timestamp.
       */
      template: v.optional(v.string('must be a text')),
    },
    SHAPE,
  ),
  /** The shared secret itself, in a header. */
  token: v.object(
    {
      ...scheme('token'),
      /** Default: x-webhook-token. */
      header: v.optional(headerField(HEADER), 'x-webhook-token'),
    },
    SHAPE,
  ),
};

/** The name of a signature scheme. */
export type SchemeName = keyof typeof sourceSchemas;

export const schemeNames = Object.keys(sourceSchemas) as readonly SchemeName[];

const everyKey = Object.values(sourceSchemas).flatMap(({ entries }) => Object.keys(entries));

/** Checks a source of unknown scheme: its scheme, its secrets, and keys that no scheme has. */
export const schemelessSchema = v.object(
  {
    ...Object.fromEntries(everyKey.map((key) => [key, v.optional(v.unknown())])),
    scheme: v.picklist(schemeNames, ({ input }) => {
      const hint = typeof input === 'string' ? didYouMean(input, schemeNames) : '';
      return `must be one of ${schemeNames.join(', ')}${hint}`;
    }),
    secrets: secretsSchema,
  },
  SHAPE,
);

/** A sender of webhooks, as data. */
export type SourceConfig = Written<(typeof sourceSchemas)[SchemeName]>;

/** The senders by name: a lower-case letter, then lower-case letters, digits and "-". */
export type SourcesConfig = Readonly<Record<string, SourceConfig>>;
