import { didYouMean, quote } from './text.ts';

/** A JSON pointer (RFC 6901) as its unescaped tokens; none of them points to the whole document. */
export type JsonPointer = readonly string[];

/** Reads a pointer in its string form; undefined when the text is none. */
export function parsePointer(text: string): JsonPointer | undefined {
  if (text === '') return [];
  if (!/^(?:\/(?:[^~/]|~[01])*)+$/.test(text)) return undefined;
  // ~1 before ~0, so that ~01 stays ~1 (RFC 6901, 4).
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** What a pointer points to in a parsed JSON document; undefined when there is nothing. */
export function valueAt(document: unknown, pointer: JsonPointer): unknown {
  let value = document;
  for (const token of pointer) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined;
    // `length` of an array is no member of the document.
    if (Array.isArray(value) && !/^(?:0|[1-9]\d*)$/.test(token)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[token];
  }
  return value;
}

/** The string form of a pointer (RFC 6901, 5). */
export function formatPointer(pointer: JsonPointer): string {
  return pointer.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Whether a value is an object of named values: a plain one, an instance or an imported namespace. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  return ['[object Object]', '[object Module]'].includes(Object.prototype.toString.call(value));
}

/** The object's own names and values that are set; what it inherits does not count. */
export function entriesOf(record: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(record).filter(([, value]) => value !== undefined);
}

/** The problem of an unknown key, in one line. `known` are the valid keys. */
export function unknownKey(name: string, key: string, known: readonly string[]): string {
  return `${name} has an unknown key ${quote(key)}${didYouMean(key, known)}`;
}
