import { HttpProblem } from '@portico/transport';
import { type JsonPointer, parsePointer, valueAt } from '../../core/json.ts';
import { didYouMean, quote } from '../../core/text.ts';
import { codecOf } from '../codecs.ts';
import type { Column, Relation, Value } from '../relation.ts';
import {
  type Condition,
  ConditionReader,
  manyOf,
  namesOf,
  type Relations,
  targetOf,
  unconnected,
} from '../rows/conditions.ts';

type Leaf = Extract<Condition, { readonly column: Column }>;
type Crossing = Extract<Condition, { readonly on: unknown }>;
type Test = Exclude<Leaf['is'], 'null'>;

/** A condition of a rule with its names resolved, before the claims of a caller are known. */
export type RuleCondition =
  | Leaf
  | { readonly is: 'claim'; readonly test: Test; readonly column: Column; readonly pointer: JsonPointer }
  | { readonly is: 'and' | 'or'; readonly all: readonly RuleCondition[] }
  | { readonly is: 'not'; readonly condition: RuleCondition }
  | (Omit<Crossing, 'condition'> & { readonly condition: RuleCondition });

/** The claims of a caller by name. */
export type Claims = Readonly<Record<string, unknown>>;

const LIMITS = { depth: 20, crossings: 5 } as const;
/** Maximum number of values in a claim that is a list. */
const MAX_VALUES = 1_000;

const TESTS: readonly string[] = ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte', 'prefix', 'contains'];
const QUANTIFIERS = ['some', 'none', 'every'] as const;

/** The claim that stands in the place of a value; undefined for any other value. */
function claimOf(given: unknown): string | undefined {
  const { caller, ...others } = Object(given) as { readonly caller?: unknown };
  return typeof caller === 'string' && Object.keys(others).length === 0 ? caller : undefined;
}

/** A tree of a rule: the relation that has the rows, and how deep it is. */
interface Place {
  readonly relation: Relation;
  readonly depth: number;
  readonly crossings: number;
}

/** Reads the trees of rules; calls `onProblem` with each mistake, which completes a sentence. */
export class RuleTreeReader {
  readonly #relations: Relations;
  readonly #onProblem: (problem: string) => void;

  constructor(relations: Relations, onProblem: (problem: string) => void) {
    this.#relations = relations;
    this.#onProblem = onProblem;
  }

  read(relation: Relation, tree: unknown): RuleCondition {
    return this.#tree({ relation, depth: 1, crossings: 0 }, tree);
  }

  #tree(place: Place, tree: unknown): RuleCondition {
    const { relation, depth } = place;
    if (depth > LIMITS.depth) return this.#wrong(`has more than ${LIMITS.depth} levels`);
    if (typeof tree !== 'object' || tree === null || Array.isArray(tree))
      return this.#wrong('must be an object of conditions');
    const inside = { ...place, depth: depth + 1 };
    return joined(
      Object.entries(tree).map(([name, given]: [string, unknown]): RuleCondition => {
        if (name === 'and' || name === 'or') {
          if (!Array.isArray(given)) return this.#wrong(`needs an array of conditions for "${name}"`);
          return { is: name, all: given.map((each) => this.#tree(inside, each)) };
        }
        if (name === 'not') return { is: 'not', condition: this.#tree(inside, given) };
        const column = relation.columns.find((each) => each.name === name);
        return column === undefined ? this.#crossing(place, name, given) : this.#column(place, column, given);
      }),
    );
  }

  #column({ relation }: Place, column: Column, given: unknown): RuleCondition {
    const plain = (value: unknown) => this.#plain(relation, { [column.name]: value });
    const whole = claimOf(given);
    if (whole !== undefined) return this.#claim(column, 'eq', whole);
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return plain(given);
    return joined(
      Object.entries(given).map(([test, value]) => {
        const claim = claimOf(value);
        return claim === undefined ? plain({ [test]: value }) : this.#claim(column, test, claim);
      }),
    );
  }

  #claim(column: Column, test: string, given: string): RuleCondition {
    const pointer = given.startsWith('/') ? parsePointer(given) : undefined;
    if (pointer === undefined)
      return this.#wrong(`needs a JSON pointer such as "/sub" for caller, not ${quote(given)}`);
    if (!TESTS.includes(test))
      return this.#wrong(`has no test ${quote(test)} for a claim${didYouMean(test, TESTS)}`);
    if (column.type.kind === 'json') return this.#wrong(`compares "${column.name}", which is JSON`);
    if ((test === 'prefix' || test === 'contains') && column.type.kind !== 'text')
      return this.#wrong(`takes ${test} only for texts, not for "${column.name}"`);
    return { is: 'claim', test: test as Test, column, pointer };
  }

  #crossing(place: Place, name: string, given: unknown): RuleCondition {
    const { relation, depth } = place;
    const many = manyOf(this.#relations, relation, name);
    const target = targetOf(this.#relations, relation, name) ?? many?.through;
    if (target === undefined) {
      const guess = didYouMean(name, namesOf(relation));
      return this.#wrong(`names ${quote(name)}, which ${relation.name} does not have${guess}`);
    }
    if (place.crossings === LIMITS.crossings)
      return this.#wrong(`crosses more than ${LIMITS.crossings} relations`);
    const within = {
      relation: many?.target.relation ?? target.relation,
      depth: depth + 1,
      crossings: place.crossings + 1,
    };
    if (target.isReference) return { is: 'some', ...target, condition: this.#tree(within, given) };
    const entries = Object.entries(Object(given) as object);
    const isQuantified = ([quantifier]: readonly [string, unknown]) =>
      QUANTIFIERS.some((each) => each === quantifier);
    if (entries.length === 0 || !entries.every(isQuantified))
      return this.#wrong(`needs {"some": {...}}, "none" or "every" for "${name}", which may be several rows`);
    return joined(
      entries.map(([quantifier, tree]) => {
        const is = quantifier as (typeof QUANTIFIERS)[number];
        const inside = this.#tree(within, tree);
        if (many === undefined) return { is, ...target, condition: inside };
        const some: RuleCondition = { is: 'some', ...many.target, condition: inside };
        const nulls = is === 'every' ? unconnected(many) : [];
        return { is, ...target, condition: nulls.length === 0 ? some : { is: 'or', all: [...nulls, some] } };
      }),
    );
  }

  /** A condition without claims. */
  #plain(relation: Relation, tree: unknown): RuleCondition {
    try {
      return new ConditionReader(this.#relations, '').readTree(relation, tree) as RuleCondition;
    } catch (error) {
      if (!(error instanceof HttpProblem)) throw error;
      return this.#wrong(error.message.replace(/^"" /, ''));
    }
  }

  #wrong(problem: string): RuleCondition {
    this.#onProblem(problem);
    return NONE as RuleCondition;
  }
}

/** The condition that every row meets, and that no row meets. */
export const ALL: Condition = { is: 'and', all: [] };
export const NONE: Condition = { is: 'or', all: [] };

function joined(all: readonly RuleCondition[]): RuleCondition {
  return all.length === 1 && all[0] !== undefined ? all[0] : { is: 'and', all };
}

export const isAll = (condition: Condition) => condition.is === 'and' && condition.all.length === 0;
export const isNone = (condition: Condition) => condition.is === 'or' && condition.all.length === 0;

/** The condition that a row meets if it meets all of them. */
export function allOf(...all: readonly Condition[]): Condition {
  const found = all.filter((each) => !isAll(each));
  if (found.some(isNone)) return NONE;
  return found.length === 1 && found[0] !== undefined ? found[0] : { is: 'and', all: found };
}

/** The condition that a row meets if it meets one of them. */
export function anyOf(...all: readonly Condition[]): Condition {
  const found = all.filter((each) => !isNone(each));
  if (found.some(isAll)) return ALL;
  return found.length === 1 && found[0] !== undefined ? found[0] : { is: 'or', all: found };
}

/** The condition that a row meets if it does not meet another. */
export function noneOf(condition: Condition): Condition {
  if (isAll(condition)) return NONE;
  return isNone(condition) ? ALL : { is: 'not', condition };
}

/** The rows that meet a condition, and those that do not; a row of which a missing claim would decide is neither. */
interface BoundCondition {
  readonly yes: Condition;
  readonly no: Condition;
  /** Whether a claim is missing. */
  readonly lacks: boolean;
}

const LACKING: BoundCondition = { yes: NONE, no: NONE, lacks: true };

/**
 * The condition for a caller. A claim is missing if it is not there, null, an object, or no value of its column. A
 * condition with a missing claim is false, and so is its opposite.
 */
export function boundTo(claims: Claims, condition: RuleCondition): Condition {
  return bound(claims, condition).yes;
}

function bound(claims: Claims, condition: RuleCondition): BoundCondition {
  switch (condition.is) {
    case 'claim': {
      const leaf = withClaim(condition, valueAt(claims, condition.pointer));
      return leaf === undefined ? LACKING : certain(leaf);
    }
    case 'and':
    case 'or': {
      const all = condition.all.map((each) => bound(claims, each));
      const [every, some] = condition.is === 'and' ? [allOf, anyOf] : [anyOf, allOf];
      const yes = every(...all.map((each) => each.yes));
      if (!all.some(({ lacks }) => lacks)) return certain(yes);
      return { yes, no: some(...all.map((each) => each.no)), lacks: true };
    }
    case 'not': {
      const { yes, no, lacks } = bound(claims, condition.condition);
      return { yes: no, no: yes, lacks };
    }
    case 'some':
    case 'none':
    case 'every': {
      const { yes, no, lacks } = bound(claims, condition.condition);
      const crossing = (is: 'some' | 'none' | 'every', inside: Condition): Condition => ({
        ...condition,
        is,
        condition: inside,
      });
      if (!lacks) return certain(crossing(condition.is, yes));
      // Which rows do not meet a condition is unknown, also where there are none.
      if (condition.is === 'every') return { yes: NONE, no: crossing('some', no), lacks };
      const some = isNone(yes) ? NONE : crossing('some', yes);
      return condition.is === 'some' ? { yes: some, no: NONE, lacks } : { yes: NONE, no: some, lacks };
    }
    default:
      return certain(condition);
  }
}

function certain(yes: Condition): BoundCondition {
  return { yes, no: noneOf(yes), lacks: false };
}

/** The condition with the value of a claim; undefined if that is missing. */
function withClaim(
  { test, column }: Extract<RuleCondition, { readonly is: 'claim' }>,
  claim: unknown,
): Condition | undefined {
  if (test === 'in') {
    const values = [claim].flat().map((each) => claimValue(column, each));
    if (values.length > MAX_VALUES || values.some((each) => each === undefined)) return undefined;
    const given = values as readonly Exclude<Value, null>[];
    // A list cannot be bound with bytes.
    if (column.type.kind !== 'bytes') return { is: 'in', column, values: given };
    return anyOf(...given.map((value): Condition => ({ is: 'eq', column, value })));
  }
  if (test === 'prefix' || test === 'contains') {
    const long: Column = { ...column, type: { kind: 'text', max: MAX_TEXT, fold: false } };
    const text = typeof claim === 'string' ? claimValue(long, claim) : undefined;
    return text === undefined ? undefined : { is: test, column, text: String(text) };
  }
  const value = claimValue(column, claim);
  return value === undefined ? undefined : { is: test, column, value };
}

const MAX_TEXT = 65_536;

/** A claim as a value of a column; undefined if it is none. A text also stands for a number, as `sub` is a text. */
export function claimValue({ type }: Column, claim: unknown): Exclude<Value, null> | undefined {
  if (claim === undefined || claim === null || typeof claim === 'object') return undefined;
  const { parse, parseText } = codecOf(type);
  const parsed = typeof claim === 'string' && type.kind !== 'json' ? parseText(claim) : parse(claim);
  return 'value' in parsed ? parsed.value : undefined;
}

/** The pointers of the claims on which a condition depends. */
export function claimsOf(condition: RuleCondition): readonly JsonPointer[] {
  switch (condition.is) {
    case 'claim':
      return [condition.pointer];
    case 'and':
    case 'or':
      return condition.all.flatMap(claimsOf);
    case 'not':
    case 'some':
    case 'none':
    case 'every':
      return claimsOf(condition.condition);
    default:
      return [];
  }
}
