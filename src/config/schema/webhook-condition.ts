import * as v from 'valibot';
import { isRecord } from '../../core/record.ts';
import type { DeliveryPredicate } from '../../inbox/rules/delivery-rule.ts';
import { pointerField, toggleField, wholeField } from './fields.ts';
import { type Given, itemsOf } from './given.ts';
import { readObject, type Written } from './read-object.ts';

const SHAPE = 'must be a function, or a condition like { pointer: "/action", is: "opened" }';
const POINTER = 'must be a JSON pointer such as /action';
const VALUE = 'must be a text, a number, true, false or null';
const VALUES = 'must be an array of texts, numbers, true, false or null, and not empty';
const NUMBER = 'must be a number';

const value = v.union([v.string(), v.pipe(v.number(), v.finite()), v.boolean(), v.null()], VALUE);
const number = v.pipe(v.number(NUMBER), v.finite(NUMBER));

const testSchema = v.object(
  {
    /** JSON pointer (RFC 6901) into the body. */
    pointer: pointerField(POINTER),
    is: v.optional(value),
    isNot: v.optional(value),
    in: v.optional(wholeField(v.pipe(v.array(value), v.minLength(1)), VALUES)),
    includes: v.optional(value),
    exists: v.optional(toggleField),
    startsWith: v.optional(v.string('must be a text')),
    above: v.optional(number),
    below: v.optional(number),
  },
  SHAPE,
);

const LIST = 'must be an array of conditions, and not empty';
const combinations = {
  all: v.object({ all: v.optional(v.unknown()) }, SHAPE),
  any: v.object({ any: v.optional(v.unknown()) }, SHAPE),
  not: v.object({ not: v.optional(v.unknown()) }, SHAPE),
} as const;

/** Tests of the value at a JSON pointer into the body; all of them must hold. */
export type PointerCondition = Written<typeof testSchema>;

/** A condition on the body of a delivery, as data. */
export type Condition =
  | PointerCondition
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition };

/** Which deliveries a handler or forward address wants. */
export type DeliveryFilter = Condition | DeliveryPredicate;

/** The filter as a field of a handler or forward address; `checkFilter` says what is wrong with it. */
export const filterField = v.custom<DeliveryFilter>(() => true);

/** Checks the filter `when` of a handler or forward address. Appends one line per problem to `problems`. */
export function checkFilter(owner: Given, problems: string[]): void {
  const filter = isRecord(owner.value) ? owner.value.when : undefined;
  if (filter === undefined || typeof filter === 'function') return;
  checkCondition({ value: filter, path: `${owner.path}.when` }, problems);
}

function checkCondition(given: Given, problems: string[]): void {
  const written = isRecord(given.value) ? given.value : {};
  const word = (['all', 'any', 'not'] as const).find((key) => written[key] !== undefined);
  if (word === undefined) checkTests(given, problems);
  else checkCombination(word, { ...given, value: written }, problems);
}

function checkCombination(
  word: keyof typeof combinations,
  given: Given & { readonly value: Readonly<Record<string, unknown>> },
  problems: string[],
): void {
  readObject(combinations[word], given, problems);
  const inner = { value: given.value[word], path: `${given.path}.${word}` };
  if (word === 'not') checkCondition(inner, problems);
  else if (!Array.isArray(inner.value) || inner.value.length === 0) problems.push(`${inner.path} ${LIST}`);
  else for (const item of itemsOf(inner, problems)) checkCondition(item, problems);
}

function checkTests(given: Given, problems: string[]): void {
  const read = readObject(testSchema, given, problems);
  if (read === undefined || Object.keys(read).length > 1) return;
  const tests = Object.keys(testSchema.entries).filter((key) => key !== 'pointer');
  problems.push(`${given.path} must have one of ${tests.join(', ')}`);
}
