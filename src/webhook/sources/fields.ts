import { type JsonPointer, parsePointer } from '../../core/json-pointer.ts';
import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord } from '../../core/record.ts';
import type { Place } from './source.ts';

/** The fields of one source, with the path that messages call it by and the list that problems go to. */
export interface Fields {
  readonly entries: ReadonlyMap<string, unknown>;
  readonly path: string;
  readonly problems: string[];
}

/** A field as `read` understands it, or `fallback` when it is not there; a problem when `read` does not. */
export function field<T>(
  { entries, path, problems }: Fields,
  key: string,
  fallback: T,
  expected: string,
  read: (value: unknown) => T | undefined,
): T {
  const value = entries.get(key);
  if (value === undefined) return fallback;
  const understood = read(value);
  if (understood === undefined) problems.push(`${path}.${key} must be ${expected}`);
  return understood ?? fallback;
}

/** One of a few words. */
export function wordField<W extends string>(
  fields: Fields,
  key: string,
  words: readonly [W, ...(readonly W[])],
): W {
  return field(fields, key, words[0], `one of ${words.join(', ')}`, (value) =>
    words.find((word) => word === value),
  );
}

const tokenPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The name of a header, in lower case. */
export function headerName(value: unknown): string | undefined {
  return typeof value === 'string' && tokenPattern.test(value) ? value.toLowerCase() : undefined;
}

/** A JSON pointer in its string form. */
export function pointer(value: unknown): JsonPointer | undefined {
  return typeof value === 'string' ? parsePointer(value) : undefined;
}

export const POINTER = 'a JSON pointer like /data/object, or "" for the whole body';

/** A place as `{ header }` or `{ pointer }`. */
export function place(value: unknown): Place | undefined {
  const [only, ...others] = isRecord(value) ? entriesOf(value) : [];
  if (only === undefined || others.length > 0) return undefined;
  const name = only[0] === 'header' ? headerName(only[1]) : undefined;
  if (name !== undefined) return { kind: 'header', name };
  const tokens = only[0] === 'pointer' ? pointer(only[1]) : undefined;
  return tokens === undefined ? undefined : { kind: 'pointer', pointer: tokens };
}

export const PLACE = '{ header: NAME } or { pointer: a JSON pointer like /type }';

/** The map of events; problems by the event's name. */
export function eventNames(
  { entries, path, problems }: Fields,
  defaults: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const value = entries.get('events');
  if (value === undefined) return defaults;
  if (!isRecord(value)) {
    problems.push(`${path}.events must be an object of event names, like { push: "new_commit" }`);
    return defaults;
  }
  const names = new Map(defaults);
  for (const [theirs, ours] of entriesOf(value)) {
    if (typeof ours === 'string' && ours !== '') names.set(theirs, ours);
    else problems.push(`${path}.events[${quote(theirs)}] must be the name of an event, and not empty`);
  }
  return names;
}
