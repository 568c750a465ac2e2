import { isRecord } from '../core/json.ts';
import { quote } from '../core/text.ts';

// Which events an endpoint gets: by type, by channel and by a condition on their data.

/** A name of an event type: words of letters, digits, `_` and `-`, separated by dots. */
export const EVENT_TYPE = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
/** Longest name of an event type, in characters. */
export const MAX_TYPE = 128;

/** Whether a text is the name of event types: one, or with `*` for the last words: `invoice.*`, or `*` alone. */
export function isTypePattern(text: string): boolean {
  return (
    text === '*' ||
    (text.length <= MAX_TYPE && EVENT_TYPE.test(text.endsWith('.*') ? text.slice(0, -2) : text))
  );
}

/** Whether a pattern matches a type: `invoice.*` matches `invoice.paid` and `invoice.line.added`, not `invoice`. */
export function matchesType(pattern: string, type: string): boolean {
  if (pattern === '*') return true;
  return pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}

/** A compiled condition on the data of an event; it never throws. */
export type DataTest = (data: unknown) => boolean;

type Scalar = string | number | boolean;

const LIMITS = { depth: 10, nodes: 100, values: 100 } as const;

/** How a value is compared with one of the condition; texts by code units, as events carry them. */
const COMPARISONS = {
  eq: (value: unknown, given: Scalar) => value === given,
  ne: (value: unknown, given: Scalar) => value !== given,
  lt: (value: unknown, given: Scalar) => isComparable(value, given) && value < given,
  lte: (value: unknown, given: Scalar) => isComparable(value, given) && value <= given,
  gt: (value: unknown, given: Scalar) => isComparable(value, given) && value > given,
  gte: (value: unknown, given: Scalar) => isComparable(value, given) && value >= given,
  prefix: (value: unknown, given: Scalar) => typeof value === 'string' && value.startsWith(String(given)),
  contains: (value: unknown, given: Scalar) => typeof value === 'string' && value.includes(String(given)),
} as const;

function isComparable(value: unknown, given: Scalar): value is Scalar {
  return typeof value === typeof given && typeof value !== 'boolean';
}

/** A condition that cannot be read. */
export class FilterError extends Error {
  override readonly name = 'FilterError';
  readonly code = 'FILTER';
}

/**
 * Compiles a condition as relations have them, on the members of an event's data: `{"amount": {"gt": 100}, "customer":
 * {"country": "DE"}, "or": [{"status": "paid"}, {"status": null}]}`. Throws FilterError.
 */
export function compileFilter(condition: unknown): DataTest {
  return new FilterCompiler().object(condition, 'filter', 1);
}

class FilterCompiler {
  #nodes = 0;

  object(given: unknown, path: string, depth: number): DataTest {
    if (!isRecord(given)) throw new FilterError(`${path} must be an object of conditions`);
    if (depth > LIMITS.depth) throw new FilterError(`${path} has more than ${LIMITS.depth} levels`);
    return every(Object.entries(given).map(([name, value]) => this.#entry(name, value, path, depth)));
  }

  #entry(name: string, given: unknown, path: string, depth: number): DataTest {
    if (++this.#nodes > LIMITS.nodes)
      throw new FilterError(`filter has more than ${LIMITS.nodes} conditions`);
    const at = `${path}.${name}`;
    if (name === 'and' || name === 'or') {
      if (!Array.isArray(given)) throw new FilterError(`${at} must be an array of conditions`);
      // Empty ones count too.
      if (given.length > LIMITS.nodes)
        throw new FilterError(`filter has more than ${LIMITS.nodes} conditions`);
      const tests = given.map((each, i) => this.object(each, `${at}[${i}]`, depth + 1));
      return name === 'and' ? every(tests) : (data) => tests.some((test) => test(data));
    }
    if (name === 'not') {
      const test = this.object(given, at, depth + 1);
      return (data) => !test(data);
    }
    const test = this.#value(given, at, depth);
    return (data) => test(isRecord(data) && Object.hasOwn(data, name) ? data[name] : undefined);
  }

  /** Tests of one member: a value, comparisons, or conditions on its own members. */
  #value(given: unknown, at: string, depth: number): DataTest {
    if (given === null) return isMissing;
    if (isScalar(given)) return (value) => value === given;
    if (!isRecord(given)) throw new FilterError(`${at} must be a value, or an object of comparisons`);
    const names = Object.keys(given);
    const isComparison = (name: string) =>
      Object.hasOwn(COMPARISONS, name) || name === 'in' || name === 'null';
    if (names.length === 0) throw new FilterError(`${at} has no comparison`);
    // A member may be called like a comparison only within an object that has no comparison.
    if (!names.some(isComparison)) return this.object(given, at, depth + 1);
    return every(
      names.map((name) => {
        if (!isComparison(name))
          throw new FilterError(`${at} mixes comparisons with the member ${quote(name)}`);
        if (++this.#nodes > LIMITS.nodes)
          throw new FilterError(`filter has more than ${LIMITS.nodes} conditions`);
        return comparison(name, given[name], `${at}.${name}`);
      }),
    );
  }
}

function comparison(name: string, given: unknown, at: string): DataTest {
  if (name === 'null') {
    if (typeof given !== 'boolean') throw new FilterError(`${at} must be true or false`);
    return given ? isMissing : (value) => !isMissing(value);
  }
  if (name === 'in') {
    if (!Array.isArray(given) || given.length > LIMITS.values || !given.every(isScalar))
      throw new FilterError(
        `${at} must be an array of at most ${LIMITS.values} texts, numbers, true and false`,
      );
    const values = new Set<unknown>(given);
    return (value) => values.has(value);
  }
  if (!isScalar(given)) throw new FilterError(`${at} must be a text, a number, true or false`);
  const compare = COMPARISONS[name as keyof typeof COMPARISONS];
  return (value) => compare(value, given);
}

const isMissing: DataTest = (value) => value === null || value === undefined;

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function every(tests: readonly DataTest[]): DataTest {
  const [only] = tests;
  return tests.length === 1 && only !== undefined ? only : (data) => tests.every((test) => test(data));
}
