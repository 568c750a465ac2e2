import * as v from 'valibot';
import { entriesOf, isRecord, parsePointer, unknownKey } from '../../core/json.ts';
import { quote } from '../../core/text.ts';

/** A text that matches a pattern. */
export function textField(pattern: RegExp, message: string) {
  return v.pipe(v.string(message), v.regex(pattern, message));
}

/** A whole number within inclusive bounds. */
export function wholeNumberField(min: number, max: number, message: string) {
  const fits = (value: number) => Number.isSafeInteger(value) && value >= min && value <= max;
  return v.pipe(v.number(message), v.check(fits, message));
}

/** A positive count. */
export const countField = wholeNumberField(1, Number.MAX_SAFE_INTEGER, 'must be a whole number above 0');

export const toggleField = v.boolean('must be true or false');

/** A function; its parameters and result cannot be checked before a call. */
export function functionField<F>() {
  return v.custom<F>((value) => typeof value === 'function', 'must be a function');
}

/** A JSON pointer (RFC 6901), parsed into its tokens. */
export function pointerField(message: string) {
  return v.pipe(
    v.string(message),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const tokens = parsePointer(dataset.value);
      if (tokens === undefined) addIssue({ message });
      return tokens ?? NEVER;
    }),
  );
}

/** Reads by `schema`, with one message for any error inside. */
export function wholeField<S extends v.GenericSchema>(schema: S, message: string) {
  return v.pipe(
    v.custom<v.InferInput<S>>((value) => v.is(schema, value), message),
    v.metadata({ takes: schema }),
    v.transform((value) => v.parse(schema, value)),
  );
}

/** A value of the configuration with its path for messages. */
export interface Given {
  readonly value: unknown;
  readonly path: string;
}

/** An entry of an object whose keys are names chosen by the user. */
export interface Named extends Given {
  readonly name: string;
}

/** The path of a property. */
export function pathTo(path: string, key: string): string {
  return /^[\w-]+$/.test(key) ? `${path}.${key}` : `${path}[${quote(key)}]`;
}

/** The items of an array; empty for undefined, and a problem for anything else. */
export function itemsOf({ value, path }: Given, problems: string[]): readonly Given[] {
  if (value === undefined) return [];
  // Array.from turns holes into undefined items.
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown, index) => ({ value: item, path: `${path}[${index}]` }));
  }
  problems.push(`${path} must be an array`);
  return [];
}

/** The entries of an object of `what`; empty for undefined, and a problem for anything else. */
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

/** The schema of an object; its message describes the object. */
interface ObjectSchema extends v.GenericSchema {
  readonly entries: v.ObjectEntries;
  readonly message: string;
}

/** The input type of a schema, read-only: the type that a configuration module writes. */
export type Written<S extends v.GenericSchema> = Frozen<v.InferInput<S>>;

type Frozen<T> = T extends (...args: never) => unknown
  ? T
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** Reads an object by its schema. On errors, appends them all to `problems` and returns undefined. */
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
  // valibot reports a missing key with the object's message; set to undefined, the key gets its own.
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
