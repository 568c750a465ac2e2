import * as v from 'valibot';
import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';
import { type Given, pathTo } from './given.ts';

/** The schema of an object; its message describes the object. */
export interface ObjectSchema extends v.GenericSchema {
  readonly entries: v.ObjectEntries;
  readonly message: string;
}

/** The input type of a schema, read-only: what a configuration module may write. */
export type Written<S extends v.GenericSchema> = Frozen<v.InferInput<S>>;

type Frozen<T> = T extends (...args: never) => unknown
  ? T
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** Reads an object by its schema. Appends all that is wrong to `problems` and returns undefined then. */
export function readObject<S extends ObjectSchema>(
  schema: S,
  { value, path }: Given,
  problems: string[],
): v.InferOutput<S> | undefined {
  if (!isRecord(value)) {
    problems.push(`${path} ${schema.message}`);
    return undefined;
  }
  const known = Object.keys(schema.entries);
  const given = entriesOf(value);
  const unknown = given.filter(([key]) => !known.includes(key));
  // valibot reports a missing key with the object's message; as undefined it gets the key's own.
  const required = known.filter((key) => schema.entries[key]?.type !== 'optional');
  const fields = {
    ...Object.fromEntries(required.map((key) => [key, undefined])),
    ...Object.fromEntries(given),
  };
  // valibot's default messages quote the value, which may be a secret.
  const { output, issues = [] } = v.safeParse(schema, fields, { message: 'is not valid' });
  problems.push(
    ...unknown.map(([key]) => unknownKey(path, key, known)),
    ...issues.map((issue) => `${(issue.path ?? []).reduce(stepInto, path)} ${issue.message}`),
  );
  return unknown.length === 0 && issues.length === 0 ? (output as v.InferOutput<S>) : undefined;
}

function stepInto(path: string, { type, key }: v.IssuePathItem): string {
  if (type === 'array') return `${path}[${key}]`;
  return type === 'map' ? `${path}[${quote(String(key))}]` : pathTo(path, String(key));
}
