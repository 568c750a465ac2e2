import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord } from '../../core/record.ts';

/** A value of the configuration with its path for messages. */
export interface Given {
  readonly value: unknown;
  readonly path: string;
}

/** An entry of an object whose keys are names that the user chose. */
export interface Named extends Given {
  readonly name: string;
}

/** The path of a property. */
export function pathTo(path: string, key: string): string {
  return /^[\w-]+$/.test(key) ? `${path}.${key}` : `${path}[${quote(key)}]`;
}

/** The items of an array; none for undefined, and a problem for anything else. */
export function itemsOf({ value, path }: Given, problems: string[]): readonly Given[] {
  if (value === undefined) return [];
  // Array.from turns holes into undefined items.
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown, index) => ({ value: item, path: `${path}[${index}]` }));
  }
  problems.push(`${path} must be an array`);
  return [];
}

/** The entries of an object of `what`; none for undefined, and a problem for anything else. */
export function namedOf({ value, path }: Given, what: string, problems: string[]): readonly Named[] {
  if (value === undefined) return [];
  if (isRecord(value)) {
    return entriesOf(value).map(([name, entry]) => ({ name, value: entry, path: pathTo(path, name) }));
  }
  problems.push(`${path} must be an object of ${what}`);
  return [];
}

/** Like `namedOf`, for names that appear in URLs. */
export function sluggedOf(given: Given, what: string, problems: string[]): readonly Named[] {
  const named = namedOf(given, `${what} by name`, problems);
  for (const { name, path } of named) {
    if (/^[a-z][a-z0-9-]*$/.test(name)) continue;
    problems.push(`${path} must have a name of lower-case letters, digits and "-" that begins with a letter`);
  }
  return named;
}
