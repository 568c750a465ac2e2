import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord } from '../../core/record.ts';

/** A part of the configuration, with the path that messages call it by. */
export interface Given {
  readonly value: unknown;
  readonly path: string;
}

/** An entry of an object, under the name that the user chose. */
export interface Named extends Given {
  readonly name: string;
}

/** The path of what stands under `key` in an object. */
export function pathTo(path: string, key: string): string {
  return /^[\w-]+$/.test(key) ? `${path}.${key}` : `${path}[${quote(key)}]`;
}

/** The items of an array, none when nothing is given; what is no array goes to `problems`. */
export function itemsOf({ value, path }: Given, problems: string[]): readonly Given[] {
  if (value === undefined) return [];
  // Array.from: a hole is an item that is undefined.
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown, index) => ({ value: item, path: `${path}[${index}]` }));
  }
  problems.push(`${path} must be an array`);
  return [];
}

/** The entries of an object, none when nothing is given; what is no object of `what` goes to `problems`. */
export function namedOf({ value, path }: Given, what: string, problems: string[]): readonly Named[] {
  if (value === undefined) return [];
  if (isRecord(value)) {
    return entriesOf(value).map(([name, entry]) => ({ name, value: entry, path: pathTo(path, name) }));
  }
  problems.push(`${path} must be an object of ${what}`);
  return [];
}

/** As `namedOf`, with names that stand in URLs and logs. */
export function sluggedOf(given: Given, what: string, problems: string[]): readonly Named[] {
  const named = namedOf(given, `${what} by name`, problems);
  for (const { name, path } of named) {
    if (/^[a-z][a-z0-9-]*$/.test(name)) continue;
    problems.push(`${path} must have a name of lower-case letters, digits and "-" that begins with a letter`);
  }
  return named;
}
