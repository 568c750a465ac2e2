import { didYouMean, quote } from './text.ts';

/** A JSON pointer (RFC 6901) as its unescaped tokens; an empty list points to the whole document. */
export type JsonPointer = readonly string[];

/** Parses the string form of a pointer; undefined if it is invalid. */
export function parsePointer(text: string): JsonPointer | undefined {
  if (text === '') return [];
  if (!/^(?:\/(?:[^~/]|~[01])*)+$/.test(text)) return undefined;
  // ~1 before ~0, so that ~01 becomes ~1 (RFC 6901, 4).
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The value that a pointer refers to in a parsed JSON document; undefined if there is none. */
export function valueAt(document: unknown, pointer: JsonPointer): unknown {
  let value = document;
  for (const token of pointer) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined;
    // The `length` of an array is not a member of the document.
    if (Array.isArray(value) && !/^(?:0|[1-9]\d*)$/.test(token)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[token];
  }
  return value;
}

/** The string form of a pointer (RFC 6901, 5). */
export function formatPointer(pointer: JsonPointer): string {
  return pointer.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Whether a value is an object with named values: a plain object, an instance or a module namespace. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  return ['[object Object]', '[object Module]'].includes(Object.prototype.toString.call(value));
}

/** The object's own properties that are not undefined, without inherited ones. */
export function entriesOf(record: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(record).filter(([, value]) => value !== undefined);
}

/** A one-line message for an unknown key; `known` are the valid keys. */
export function unknownKey(name: string, key: string, known: readonly string[]): string {
  return `${name} has an unknown key ${quote(key)}${didYouMean(key, known)}`;
}
