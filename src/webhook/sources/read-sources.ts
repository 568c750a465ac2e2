import type { InferOutput } from 'valibot';
import { type Given, sluggedOf } from '../../config/schema/given.ts';
import { readObject } from '../../config/schema/read-object.ts';
import {
  type SchemeName,
  schemelessSchema,
  schemeNames,
  sourceSchemas,
} from '../../config/schema/webhook-sources.ts';
import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { isRecord } from '../../core/record.ts';
import { github } from '../schemes/github.ts';
import { hmac } from '../schemes/hmac.ts';
import type { Scheme } from '../schemes/scheme.ts';
import { slack } from '../schemes/slack.ts';
import { standard } from '../schemes/standard.ts';
import { stripe } from '../schemes/stripe.ts';
import { bodyAlone, timestampAndBody } from '../schemes/template.ts';
import { DEFAULT_TOLERANCE } from '../schemes/timestamp.ts';
import { token } from '../schemes/token.ts';
import { defaultLayout } from './defaults.ts';
import { hmacSchema } from './hmac-source.ts';
import { keptHeadersOf } from './kept-headers.ts';
import { readSecrets } from './read-secrets.ts';
import type { SourceLayout, SourceSettings } from './source.ts';

const schemas = { ...sourceSchemas, hmac: hmacSchema };

type ReadSource = InferOutput<(typeof schemas)[SchemeName]>;

/**
 * Reads `webhook.sources`, which messages call `path`. Appends one line per problem to `problems`; with problems the
 * result is incomplete.
 */
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
function signatureOf(source: ReadSource): Scheme {
  const tolerance = ('tolerance' in source ? source.tolerance : undefined) ?? DEFAULT_TOLERANCE;
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
  }
}

function layoutOf(source: ReadSource): SourceLayout {
  const { scheme, event, events, data, dedup } = source;
  const layout = defaultLayout(scheme, 'headerPrefix' in source ? source.headerPrefix : undefined);
  return {
    event: event ?? layout.event,
    events: new Map([...layout.events, ...(events ?? [])]),
    data: data ?? layout.data,
    dedup: dedup === false ? undefined : (dedup ?? layout.dedup),
  };
}
