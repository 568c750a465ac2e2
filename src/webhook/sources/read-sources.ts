import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';
import { didYouMean } from '../../core/suggest.ts';
import { type SchemeName, schemeNames } from '../schemes/schemes.ts';
import { defaultLayout } from './defaults.ts';
import { eventNames, type Fields, field, PLACE, POINTER, place, pointer } from './fields.ts';
import { readSecrets } from './read-secrets.ts';
import { readScheme, schemeFields } from './scheme-fields.ts';
import type { Place, SourceSettings } from './source.ts';

const commonFields = ['scheme', 'secrets', 'event', 'events', 'data', 'dedup'];
const everyField = [...new Set([...commonFields, ...Object.values(schemeFields).flat()])];

/**
 * Reads the sources of a configuration, data that may come from anywhere. `path` is how messages call it. What is
 * wrong goes to `problems`, one line each; then the result is not to be used.
 */
export function readSources(
  value: unknown,
  path: string,
  resolve: SecretResolver,
  problems: string[],
): ReadonlyMap<string, SourceSettings> {
  const sources = new Map<string, SourceSettings>();
  if (value === undefined) return sources;
  if (!isRecord(value)) {
    problems.push(`${path} must be an object of sources by name`);
    return sources;
  }
  for (const [name, entry] of entriesOf(value)) {
    const named = /^[a-z][a-z0-9-]*$/.test(name);
    const at = named ? `${path}.${name}` : `${path}[${quote(name)}]`;
    if (!named)
      problems.push(`${at} must have a name of lower-case letters, digits and "-" that begins with a letter`);
    if (!isRecord(entry)) problems.push(`${at} must be an object with scheme and secrets`);
    else {
      const fields = { entries: new Map(entriesOf(entry)), path: at, problems };
      const source = readSource(name, fields, resolve);
      if (source !== undefined) sources.set(name, source);
    }
  }
  return sources;
}

function readSource(name: string, fields: Fields, resolve: SecretResolver): SourceSettings | undefined {
  const { entries, path, problems } = fields;
  const scheme = schemeOf(fields);
  const known = scheme === undefined ? everyField : [...commonFields, ...schemeFields[scheme]];
  for (const key of entries.keys()) if (!known.includes(key)) problems.push(unknownKey(path, key, known));
  const secrets = readSecrets(entries.get('secrets'), `${path}.secrets`, scheme, resolve, problems);
  if (scheme === undefined) return undefined;
  const chosen = readScheme(scheme, fields);
  const layout = defaultLayout(chosen);
  return {
    name,
    chosen,
    secrets,
    event: field(fields, 'event', layout.event, PLACE, place),
    events: eventNames(fields, layout.events),
    data: field(fields, 'data', layout.data, POINTER, pointer),
    dedup: dedup(fields, layout.dedup),
  };
}

function schemeOf({ entries, path, problems }: Fields): SchemeName | undefined {
  const value = entries.get('scheme');
  const scheme = schemeNames.find((known) => known === value);
  if (scheme === undefined) {
    const suggestion = typeof value === 'string' ? didYouMean(value, schemeNames) : '';
    problems.push(`${path}.scheme must be one of ${schemeNames.join(', ')}${suggestion}`);
  }
  return scheme;
}

function dedup(fields: Fields, fallback: Place | undefined): Place | undefined {
  if (fields.entries.get('dedup') === false) return undefined;
  return field<Place | undefined>(fields, 'dedup', fallback, `${PLACE}, or false`, place);
}
