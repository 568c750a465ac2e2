import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';
import { readSecrets } from '../sources/read-secrets.ts';
import type { ForwardSettings } from './forward-settings.ts';

const NUMBERS = ['concurrency', 'timeout', 'attempts'] as const;
const KEYS = ['url', 'secrets', 'events', 'allowPrivate', ...NUMBERS];

/**
 * Reads `webhook.forward`: by name a URL, or an object with a URL and more. What is wrong goes to `problems`, one
 * line each; then the result is not to be used.
 */
export function readForwards(
  value: unknown,
  path: string,
  resolve: SecretResolver,
  problems: string[],
): readonly ForwardSettings[] {
  if (value === undefined) return [];
  if (!isRecord(value)) {
    problems.push(`${path} must be an object of addresses by name`);
    return [];
  }
  return entriesOf(value).flatMap(([name, entry]) => {
    const named = /^[a-z][a-z0-9-]*$/.test(name);
    const at = named ? `${path}.${name}` : `${path}[${quote(name)}]`;
    if (!named) {
      problems.push(`${at} must have a name of lower-case letters, digits and "-" that begins with a letter`);
    }
    return readForward(name, typeof entry === 'string' ? { url: entry } : entry, at, resolve, problems) ?? [];
  });
}

function readForward(
  name: string,
  entry: unknown,
  at: string,
  resolve: SecretResolver,
  problems: string[],
): ForwardSettings | undefined {
  if (!isRecord(entry)) {
    problems.push(`${at} must be a URL, or an object with a url`);
    return undefined;
  }
  const given = new Map(entriesOf(entry));
  for (const key of given.keys()) if (!KEYS.includes(key)) problems.push(unknownKey(at, key, KEYS));
  const url = urlOf(given.get('url'));
  if (url === undefined) problems.push(`${at}.url must be an http or https URL without a user name in it`);
  const secrets =
    given.get('secrets') === undefined
      ? []
      : readSecrets(given.get('secrets'), `${at}.secrets`, 'standard', resolve, problems);
  const events = given.get('events');
  if (events !== undefined && !isTexts(events)) problems.push(`${at}.events must be an array of event names`);
  const allowPrivate = given.get('allowPrivate') ?? false;
  if (typeof allowPrivate !== 'boolean') problems.push(`${at}.allowPrivate must be true or false`);
  for (const key of NUMBERS) {
    const number = given.get(key);
    if (number !== undefined && !(Number.isSafeInteger(number) && Number(number) > 0)) {
      problems.push(`${at}.${key} must be a whole number above 0`);
    }
  }
  if (url === undefined) return undefined;
  const numbers = Object.fromEntries(
    NUMBERS.filter((key) => given.has(key)).map((key) => [key, given.get(key)]),
  );
  return {
    name,
    url,
    secrets,
    events: isTexts(events) ? events : undefined,
    allowPrivate: allowPrivate === true,
    ...numbers,
  };
}

function urlOf(value: unknown): URL | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  const http = url.protocol === 'http:' || url.protocol === 'https:';
  return http && url.username === '' && url.password === '' ? url : undefined;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
