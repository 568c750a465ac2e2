import { type InferOutput, parse } from 'valibot';
import { type Given, sluggedOf } from '../../config/schema/given.ts';
import { readObject } from '../../config/schema/read-object.ts';
import { schemelessSchema, sourceSchemas } from '../../config/schema/webhook-sources.ts';
import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { isRecord } from '../../core/record.ts';
import { type ChosenScheme, type SchemeName, schemeNames } from '../schemes/schemes.ts';
import { bodyAlone, timestampAndBody } from '../schemes/template.ts';
import { DEFAULT_TOLERANCE } from '../schemes/timestamp.ts';
import { defaultLayout } from './defaults.ts';
import { hmacSchema } from './hmac-source.ts';
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
): ReadonlyMap<string, SourceSettings> {
  const sources = sluggedOf({ value, path }, 'sources', problems).flatMap((entry) => {
    const scheme = schemeOf(entry);
    const source =
      scheme === undefined
        ? void readObject(schemelessSchema, entry, problems)
        : readObject(schemas[scheme], entry, problems);
    const secrets = readSecrets(entry, scheme, resolve, problems);
    if (source === undefined) return [];
    const chosen = chosenScheme(source);
    const layout = layoutOf(source, defaultLayout(chosen));
    return [[entry.name, { name: entry.name, chosen, secrets, ...layout }] as const];
  });
  return new Map(sources);
}

function schemeOf({ value }: Given): SchemeName | undefined {
  const given = isRecord(value) && Object.hasOwn(value, 'scheme') ? value.scheme : undefined;
  return schemeNames.find((name) => name === given);
}

/** A scheme with its default parameters; `header` is that of the signature or token. */
export function defaultScheme(scheme: SchemeName, header: string | undefined): ChosenScheme {
  return chosenScheme(parse(schemas[scheme], { scheme, secrets: 'none', header }));
}

/** The scheme with its parameters and their defaults. */
function chosenScheme(source: ReadSource): ChosenScheme {
  const tolerance = ('tolerance' in source ? source.tolerance : undefined) ?? DEFAULT_TOLERANCE;
  switch (source.scheme) {
    case 'standard':
      return { scheme: source.scheme, params: { headerPrefix: source.headerPrefix, tolerance } };
    case 'github':
      return { scheme: source.scheme, params: {} };
    case 'stripe':
    case 'slack':
      return { scheme: source.scheme, params: { tolerance } };
    case 'hmac': {
      const { scheme, header, algorithm, encoding, prefix, timestampHeader } = source;
      const { fill: template } = source.template ?? (timestampHeader ? timestampAndBody : bodyAlone);
      const params = { header, algorithm, encoding, prefix, timestampHeader, tolerance, template };
      return { scheme, params };
    }
    case 'token':
      return { scheme: source.scheme, params: { header: source.header } };
  }
}

function layoutOf({ event, events, data, dedup }: ReadSource, layout: SourceLayout): SourceLayout {
  return {
    event: event ?? layout.event,
    events: new Map([...layout.events, ...(events ?? [])]),
    data: data ?? layout.data,
    dedup: dedup === false ? undefined : (dedup ?? layout.dedup),
  };
}
