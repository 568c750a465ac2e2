import { quote } from './quote.ts';
import { didYouMean } from './suggest.ts';

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
