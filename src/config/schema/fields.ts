import * as v from 'valibot';
import { parsePointer } from '../../core/json-pointer.ts';

/** A text that matches a pattern. */
export function textField(pattern: RegExp, message: string) {
  return v.pipe(v.string(message), v.regex(pattern, message));
}

/** A whole number between two bounds, both included. */
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

/** A JSON pointer (RFC 6901), parsed to its tokens. */
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

/** Reads by `schema`, with one message for all that can be wrong inside. */
export function wholeField<S extends v.GenericSchema>(schema: S, message: string) {
  return v.pipe(
    v.custom<v.InferInput<S>>((value) => v.is(schema, value), message),
    v.transform((value) => v.parse(schema, value)),
  );
}
