import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';

/** A part of a configuration module, with the path that messages call it by. */
export interface Given {
  readonly value: unknown;
  readonly path: string;
}

/** Reads an array of objects with certain fields; what `read` cannot use it puts among the problems itself. */
export function readItems<T>(
  { value, path }: Given,
  fields: readonly string[],
  problems: string[],
  read: (entry: ReadonlyMap<string, unknown>, at: string) => T | undefined,
): readonly T[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    problems.push(`${path} must be an array`);
    return [];
  }
  return Array.from(value).flatMap((entry, index) => {
    const at = `${path}[${index}]`;
    if (!isRecord(entry)) {
      problems.push(`${at} must be an object with ${fields.join(', ')}`);
      return [];
    }
    const entries = new Map(entriesOf(entry));
    for (const key of entries.keys()) {
      if (!fields.includes(key)) problems.push(unknownKey(at, key, fields));
    }
    return read(entries, at) ?? [];
  });
}
