import * as v from 'valibot';
import { headerName } from '../../core/header-name.ts';
import { entriesOf, isRecord } from '../../core/record.ts';
import { isSecretHeader } from '../../core/secret-header.ts';
import { didYouMean } from '../../core/suggest.ts';
import { countField, pointerField, textField, wholeField, wholeNumberField } from './fields.ts';
import type { Written } from './read-object.ts';
import { secretsSchema } from './secret-reference.ts';

const HEADER = 'must be the name of a header';
const SECRET_HEADER = 'must not be a header with a secret (authorization, cookie, signature, token)';
const PLACE = 'must be { header: NAME } or { pointer: a JSON pointer like /type }';
const POINTER = 'must be a JSON pointer like /data/object, or "" for the whole body';
const EVENTS = 'must be an object of event names, like { push: "new_commit" }';
const EVENT = 'must be the name of an event, and not empty';
const SHAPE = 'must be an object with scheme and secrets';

/** The name of a header, read in lower case. */
const headerField = (message: string) =>
  v.pipe(
    v.string(message),
    v.check((text) => headerName(text) !== undefined, message),
    v.toLowerCase(),
  );

/** The name of a header that may be stored, read in lower case. */
const keptHeaderField = v.pipe(
  headerField(HEADER),
  v.check((name) => !isSecretHeader(name), SECRET_HEADER),
);

/** Where a text of a request is: in a header, or in the body at a JSON pointer (RFC 6901). */
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
  /** Any of them is accepted, so that one can be rotated. */
  secrets: secretsSchema,
  /** Where the event is named. */
  event: v.optional(wholeField(place, PLACE)),
  /** The names that events get here, by the sender's names; all others keep theirs. */
  events: v.optional(
    v.pipe(
      v.custom<Readonly<Record<string, string>>>(isRecord, EVENTS),
      v.transform((names) => new Map(entriesOf(names))),
      v.map(v.string(), v.pipe(v.string(EVENT), v.nonEmpty(EVENT))),
    ),
  ),
  /** Where in the body the data is, as a JSON pointer (RFC 6901). */
  data: v.optional(pointerField(POINTER)),
  /** The id by which duplicates are recognised; false: no request is a duplicate. */
  dedup: v.optional(wholeField(v.union([v.literal(false), place]), `${PLACE}, or false`)),
  /** The headers that its deliveries keep; default those of known senders with event names, ids and times. */
  headers: v.optional(v.array(keptHeaderField, 'must be an array of header names')),
  /** Maximum body size, in bytes; default that of the scheme's sender. */
  maxBodyBytes: v.optional(countField),
};

const timed = {
  /** Maximum difference between the time of a request and ours, in seconds; default 300, 0 for no limit. */
  tolerance: v.optional(
    wholeNumberField(0, Number.MAX_SAFE_INTEGER, 'must be a whole number of seconds, 0 for any time'),
  ),
};

const scheme = <S extends string>(name: S) => ({ scheme: v.literal(name), ...everySource });

/** The sources that a configuration may hold, by their scheme. */
export const sourceSchemas = {
  /** Standard Webhooks: secrets begin with `whsec_` (shared) or `whpk_` (the sender's public key). */
  standard: v.object(
    {
      ...scheme('standard'),
      ...timed,
      /** Prefix of its header names; default `webhook`, some senders use `svix`. */
      headerPrefix: v.optional(headerField('must be the first word of header names'), 'webhook'),
    },
    SHAPE,
  ),
  github: v.object(scheme('github'), SHAPE),
  stripe: v.object({ ...scheme('stripe'), ...timed }, SHAPE),
  slack: v.object({ ...scheme('slack'), ...timed }, SHAPE),
  /** An HMAC in a header. */
  hmac: v.object(
    {
      ...scheme('hmac'),
      ...timed,
      /** The header with the signature. */
      header: headerField(`${HEADER}: the one with the signature`),
      /** Default sha256. */
      algorithm: v.optional(
        v.picklist(['sha256', 'sha512', 'sha1'], 'must be one of sha256, sha512, sha1'),
        'sha256',
      ),
      /** Default hex. */
      encoding: v.optional(v.picklist(['hex', 'base64'], 'must be one of hex, base64'), 'hex'),
      /** Prefix of the signature in the header, like `sha256=`; default none. */
      prefix: v.optional(textField(/^[ -~]*$/, 'must be a text of visible ASCII characters and spaces'), ''),
      /** The header with the time of the request, in whole seconds; default none. */
      timestampHeader: v.optional(headerField(HEADER)),
      /**
       * What is signed: text with `{body}` once, `{timestamp}` and `{header:NAME}`.
       * Default `{body}`, and `{timestamp}.{body}` with a timestamp.
       */
      template: v.optional(v.string('must be a text')),
    },
    SHAPE,
  ),
  /** The shared secret itself in a header. */
  token: v.object(
    {
      ...scheme('token'),
      /** Default x-webhook-token. */
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
