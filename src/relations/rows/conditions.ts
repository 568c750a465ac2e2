import { HttpProblem, parseJsonText } from '@portico/transport';
import { didYouMean, quote } from '../../core/text.ts';
import { codecOf } from '../codecs.ts';
import type { Column, ColumnType, Reference, Relation, Value } from '../relation.ts';

/** How a column is compared with a value; `ne` also matches null, so that it is the opposite of `eq`. */
type Comparison = 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte';

/** A condition on the rows of a relation, with its names resolved and its values read. */
export type Condition =
  | { readonly is: Comparison; readonly column: Column; readonly value: Exclude<Value, null> }
  | { readonly is: 'in'; readonly column: Column; readonly values: readonly Exclude<Value, null>[] }
  | { readonly is: 'prefix' | 'contains'; readonly column: Column; readonly text: string }
  | { readonly is: 'null'; readonly column: Column; readonly isNull: boolean }
  /** `and` of none matches every row, `or` of none matches no row. */
  | { readonly is: 'and' | 'or'; readonly all: readonly Condition[] }
  | { readonly is: 'not'; readonly condition: Condition }
  /** A row of another relation, found by a reference or an inverse, meets the condition: some, none or all. */
  | {
      readonly is: 'some' | 'none' | 'every';
      readonly relation: Relation;
      /** The pairs of columns, here and there, that are equal. */
      readonly on: readonly (readonly [here: string, there: string])[];
      /** Whether at most one row is found, by its key. */
      readonly isReference: boolean;
      readonly condition: Condition;
    };

/** All relations of a declaration, by name. */
export type Relations = ReadonlyMap<string, Relation>;

/** Says which columns the names in a request may mean. */
export interface ColumnGuard {
  /** Throws HttpProblem for a column that the caller may not read; `parameter` is the one that names it. */
  requireReadable(parameter: string, relation: Relation, column: Column): void;
  /** The indexes of the columns that the caller may read; undefined for all. */
  readableOf(relation: Relation): readonly number[] | undefined;
}

const LIMITS = { depth: 20, nodes: 1_000, values: 1_000, crossings: 5 } as const;

/** Why a condition cannot be read; `parameter` names the parameter that it came in. */
export function invalidParameter(parameter: string, message: string): HttpProblem {
  return new HttpProblem(400, 'INVALID_PARAMETER', message, { reasons: [{ detail: message, parameter }] });
}

/** Pairs of columns, here and there, that are equal. */
type Pairs = readonly (readonly [here: string, there: string])[];

/** Where the name of a reference or an inverse leads. */
interface Target {
  readonly relation: Relation;
  readonly on: Pairs;
  readonly isReference: boolean;
}

/** Where a many-to-many leads: first to the rows that connect. */
interface ManyTarget {
  /** The relation that connects. */
  readonly through: Target;
  /** The other relation, as seen from there. */
  readonly target: Target;
}

const pairsOf = ({ columns, targetColumns }: Reference): Pairs =>
  columns.map((column, i) => [column, targetColumns[i] ?? ''] as const);

const flipped = (pairs: Pairs): Pairs => pairs.map(([here, there]) => [there, here]);

/** The relations that a many-to-many of a relation leads to, or undefined. */
export function manyOf(relations: Relations, from: Relation, name: string): ManyTarget | undefined {
  const many = from.many.find((each) => each.name === name);
  const through = many && relations.get(many.through);
  const named = (reference: string | undefined) =>
    through?.references.find((each) => each.name === reference);
  const [back, onward] = [named(many?.reference), named(many?.other)];
  const relation = onward && relations.get(onward.to);
  if (through === undefined || back === undefined || onward === undefined || relation === undefined)
    return undefined;
  return {
    through: { relation: through, on: flipped(pairsOf(back)), isReference: false },
    target: { relation, on: pairsOf(onward), isReference: true },
  };
}

/** The relation that a reference or an inverse of a relation leads to; undefined if there is none. */
export function targetOf(relations: Relations, from: Relation, name: string): Target | undefined {
  const reference = from.references.find((each) => each.name === name);
  const referred = reference && relations.get(reference.to);
  if (reference !== undefined && referred !== undefined)
    return { relation: referred, on: pairsOf(reference), isReference: true };
  const inverse = from.inverses.find((each) => each.name === name);
  const other = inverse && relations.get(inverse.relation);
  const back = other?.references.find((each) => each.name === inverse?.reference);
  if (other === undefined || back === undefined) return undefined;
  return { relation: other, on: flipped(pairsOf(back)), isReference: false };
}

/** Completes the refusal of a parameter that names no column; `others` are further names. */
export function unknownName(
  relations: Relations,
  of: Relation,
  name: string,
  others: readonly string[] = [],
): string {
  const { name: relation, references, inverses, many } = of;
  const example = (to: string) => {
    const { columns: known = [], key = [] } = relations.get(to) ?? {};
    const found = known.find((column) => !key.includes(column.name)) ?? known[0];
    return quote(`${name}.${found?.name ?? ''}`);
  };
  const reference = references.find((each) => each.name === name);
  if (reference !== undefined)
    return `names ${quote(name)}, a row of ${reference.to}; use ${reference.columns.join(', ')}, or a column of that row, such as ${example(reference.to)}`;
  const inverse = inverses.find((each) => each.name === name);
  if (inverse !== undefined)
    return `names ${quote(name)}, rows of ${inverse.relation}; use one of their columns, such as ${example(inverse.relation)}`;
  const crossing = many.some((each) => each.name === name) ? crossingOf(relations, of, name) : undefined;
  if (crossing !== undefined)
    return `names ${quote(name)}, rows of ${crossing.relation.name}; use one of their columns, such as ${example(crossing.relation.name)}`;
  return `names ${quote(name)}, which ${relation} does not have${didYouMean(name, [...namesOf(of), ...others])}`;
}

/** The names that a condition on a relation may use. */
export function namesOf({ columns, references, inverses, many }: Relation): readonly string[] {
  return [...columns, ...references, ...inverses, ...many].map(({ name }) => name);
}

/** What a condition crosses: a reference or an inverse, or the rows that connect and then a reference. */
interface Crossing {
  readonly first: Target;
  readonly second: Target | undefined;
  /** The relation behind it. */
  readonly relation: Relation;
}

function crossingOf(relations: Relations, from: Relation, name: string): Crossing | undefined {
  const first = targetOf(relations, from, name);
  if (first !== undefined) return { first, second: undefined, relation: first.relation };
  const many = manyOf(relations, from, name);
  return many && { first: many.through, second: many.target, relation: many.target.relation };
}

/** The condition that rows behind a crossing meet one. */
function across({ first, second }: Crossing, is: 'some' | 'none' | 'every', condition: Condition): Condition {
  if (second === undefined) return { is, ...first, condition };
  const inside: Condition = { is: 'some', ...second, condition };
  const nulls = is === 'every' ? unconnected({ through: first, target: second }) : [];
  return { is, ...first, condition: nulls.length === 0 ? inside : { is: 'or', all: [...nulls, inside] } };
}

/** The conditions by which a row connects nothing, because its reference is null: it does not count among all. */
export function unconnected({ through, target }: ManyTarget): readonly Extract<Condition, { is: 'null' }>[] {
  return through.relation.columns
    .filter(({ name, nullable }) => nullable && target.on.some(([own]) => own === name))
    .map((column) => ({ is: 'null', column, isNull: true }));
}

/** Reads conditions on a relation from a tree of JSON or from parameters. */
export class ConditionReader {
  readonly #relations: Relations;
  /** The parameter that is read. */
  readonly #parameter: string;
  readonly #guard: ColumnGuard | undefined;
  #nodes = 0;

  constructor(relations: Relations, parameter: string, guard?: ColumnGuard) {
    this.#relations = relations;
    this.#parameter = parameter;
    this.#guard = guard;
  }

  /** Reads a tree: `{"title": "Emma", "author": {"name": {"prefix": "J"}}, "or": [...]}`. Throws HttpProblem. */
  readTree(relation: Relation, tree: unknown, depth = 1, crossings = 0): Condition {
    if (depth > LIMITS.depth) throw this.#limit(`at most ${LIMITS.depth} levels (depth)`);
    if (typeof tree !== 'object' || tree === null || Array.isArray(tree))
      throw this.#fault('takes an object of conditions');
    const all = Object.entries(tree).map(([name, given]) => {
      this.#count();
      if (name === 'and' || name === 'or') {
        if (!Array.isArray(given)) throw this.#fault(`takes an array of conditions for "${name}"`);
        return {
          is: name,
          all: given.map((each) => this.readTree(relation, each, depth + 1, crossings)),
        } as const;
      }
      if (name === 'not')
        return { is: 'not', condition: this.readTree(relation, given, depth + 1, crossings) } as const;
      const column = relation.columns.find((each) => each.name === name);
      if (column !== undefined) {
        this.#guard?.requireReadable(this.#parameter, relation, column);
        return this.#readColumn(column, given);
      }
      return this.#readCrossing(relation, name, given, depth, crossings);
    });
    return all.length === 1 && all[0] !== undefined ? all[0] : { is: 'and', all };
  }

  /** Reads a parameter such as `author.name:prefix` for the column `name`. Throws HttpProblem. */
  readParameter(column: Column, test: string, values: readonly string[]): Condition {
    const only = () => {
      const [value = '', ...more] = values;
      if (more.length > 0) throw this.#fault('takes one value');
      return value;
    };
    const parse = (text: string) => this.#valueOf(column, codecOf(column.type).parseText(text));
    switch (test) {
      case '':
      case 'not': {
        if (values.length > LIMITS.values) throw this.#limit(`at most ${LIMITS.values} values (values)`);
        const read = values.map(parse);
        const [first] = read;
        const found: Condition =
          read.length === 1 && first !== undefined ? { is: 'eq', column, value: first } : anyOf(column, read);
        if (test === '') return found;
        return found.is === 'eq' ? { ...found, is: 'ne' } : { is: 'not', condition: found };
      }
      case 'lt':
      case 'lte':
      case 'gt':
      case 'gte':
        return { is: test, column, value: parse(only()) };
      case 'prefix':
      case 'contains':
        return this.#readText(column, test, only());
      case 'null': {
        const value = only();
        if (value !== 'true' && value !== 'false') throw this.#fault('takes true or false');
        return { is: 'null', column, isNull: value === 'true' };
      }
      default:
        throw this.#fault(
          `has no test ${quote(test)}${didYouMean(test, TESTS)}; there are ${TESTS.map((each) => `:${each}`).join(', ')}`,
        );
    }
  }

  #readColumn(column: Column, given: unknown): Condition {
    if (given === null) return { is: 'null', column, isNull: true };
    const isTest = column.type.kind !== 'json' || Object.keys(Object(given)).every(isNullTest);
    if (typeof given !== 'object' || Array.isArray(given) || !isTest)
      return { is: 'eq', column, value: this.#valueOf(column, codecOf(column.type).parse(given)) };
    const all = Object.entries(given).map(([test, value]): Condition => {
      this.#count();
      switch (test) {
        case 'eq':
        case 'ne':
          if (value === null) return { is: 'null', column, isNull: test === 'eq' };
          return { is: test, column, value: this.#valueOf(column, codecOf(column.type).parse(value)) };
        case 'lt':
        case 'lte':
        case 'gt':
        case 'gte':
          return { is: test, column, value: this.#valueOf(column, codecOf(column.type).parse(value)) };
        case 'in': {
          if (!Array.isArray(value)) throw this.#fault(`takes an array for "${column.name}.in"`);
          if (value.length > LIMITS.values)
            throw this.#limit(`at most ${LIMITS.values} values for "in" (values)`);
          const { parse } = codecOf(column.type);
          return anyOf(
            column,
            value.map((each) => this.#valueOf(column, parse(each))),
          );
        }
        case 'prefix':
        case 'contains':
          return this.#readText(column, test, value);
        case 'isNull':
          if (typeof value !== 'boolean')
            throw this.#fault(`takes true or false for "${column.name}.isNull"`);
          return { is: 'null', column, isNull: value };
        default:
          throw this.#fault(
            `has no test ${quote(test)} for "${column.name}"${didYouMean(test, TREE_TESTS)}; there are ${TREE_TESTS.join(', ')}`,
          );
      }
    });
    return all.length === 1 && all[0] !== undefined ? all[0] : { is: 'and', all };
  }

  #readText(column: Column, test: 'prefix' | 'contains', given: unknown): Condition {
    if (column.type.kind !== 'text')
      throw this.#fault(`takes ${test} only for texts, not for "${column.name}"`);
    // A longer text than the column may have matches nothing, and is accepted.
    const type: ColumnType = { ...column.type, max: Math.max(column.type.max, 500) };
    return { is: test, column, text: String(this.#valueOf(column, codecOf(type).parse(given))) };
  }

  #readCrossing(
    relation: Relation,
    name: string,
    given: unknown,
    depth: number,
    crossings: number,
  ): Condition {
    const crossing = this.#crossing(relation, name);
    const { isReference } = crossing.first;
    if (crossings >= LIMITS.crossings)
      throw this.#limit(`at most ${LIMITS.crossings} crossings of relations (crossings)`);
    const within = (tree: unknown) => this.readTree(crossing.relation, tree, depth + 1, crossings + 1);
    const quantified = isReference ? [] : quantifiersOf(given);
    if (!isReference && quantified.length === 0)
      throw this.#fault(`takes {"some": {...}}, "none" or "every" for "${name}", which may be several rows`);
    if (isReference) {
      if (typeof given !== 'object' || given === null || Array.isArray(given))
        throw this.#fault(unknownName(this.#relations, relation, name));
      const [quantifier] = quantifiersOf(given)[0] ?? [];
      if (quantifier !== undefined && !crossing.relation.columns.some((column) => column.name === quantifier))
        throw this.#fault(
          `takes the conditions on ${quote(name)}, which is one row, without "${quantifier}"`,
        );
      return across(crossing, 'some', within(given));
    }
    const all = quantified.map(([is, tree]) => across(crossing, is, within(tree)));
    return all.length === 1 && all[0] !== undefined ? all[0] : { is: 'and', all };
  }

  #crossing(relation: Relation, name: string): Crossing {
    const crossing = crossingOf(this.#relations, relation, name);
    if (crossing !== undefined) return crossing;
    throw this.#fault(unknownName(this.#relations, relation, name));
  }

  #valueOf(column: Column, parsed: ReturnType<ReturnType<typeof codecOf>['parse']>): Exclude<Value, null> {
    if (column.type.kind === 'json') throw this.#fault(`cannot compare "${column.name}", which is JSON`);
    if ('value' in parsed) return parsed.value;
    throw this.#fault(`compares "${column.name}", which ${parsed.problem}`);
  }

  #count(): void {
    if (++this.#nodes > LIMITS.nodes) throw this.#limit(`at most ${LIMITS.nodes} conditions (nodes)`);
  }

  #fault(what: string): HttpProblem {
    return invalidParameter(this.#parameter, `"${this.#parameter}" ${what}`);
  }

  #limit(what: string): HttpProblem {
    const message = `"${this.#parameter}" takes ${what}`;
    return new HttpProblem(400, 'LIMIT_EXCEEDED', message, {
      reasons: [{ detail: message, parameter: this.#parameter }],
    });
  }
}

/** The condition that a column has one of some values. A list cannot be bound with bytes. */
function anyOf(column: Column, values: readonly Exclude<Value, null>[]): Condition {
  if (column.type.kind !== 'bytes') return { is: 'in', column, values };
  return { is: 'or', all: values.map((value) => ({ is: 'eq', column, value })) };
}

const TESTS = ['not', 'lt', 'lte', 'gt', 'gte', 'prefix', 'contains', 'null'] as const;
const TREE_TESTS = ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte', 'prefix', 'contains', 'isNull'] as const;
/** The only tests of documents: whether there is one. */
const isNullTest = (name: string) => name === 'isNull' || name === 'eq' || name === 'ne';
const QUANTIFIERS: readonly string[] = ['some', 'none', 'every'];

function quantifiersOf(given: unknown): readonly (readonly ['some' | 'none' | 'every', unknown])[] {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return [];
  const entries = Object.entries(given);
  if (!entries.every(([name]) => QUANTIFIERS.includes(name))) return [];
  return entries as (readonly ['some' | 'none' | 'every', unknown])[];
}

/** A condition of a parameter, on the rows to which a path leads. */
export interface Filter {
  readonly path: readonly string[];
  readonly condition: Condition;
}

/**
 * Reads a filter such as `author.name:prefix`, the name of `parameter` or its end. `others` are the parameters that could
 * be meant. Throws HttpProblem.
 */
export function readFilter(
  relations: Relations,
  relation: Relation,
  name: string,
  values: readonly string[],
  {
    parameter = name,
    others = [],
    guard,
  }: {
    readonly parameter?: string;
    readonly others?: readonly string[];
    readonly guard?: ColumnGuard | undefined;
  } = {},
): Filter {
  const unknown = (at: Relation, step: string) => {
    const what = unknownName(relations, at, step, step === name ? others : []);
    return invalidParameter(parameter, `${quote(parameter)} ${what}`);
  };
  const colon = name.indexOf(':');
  const dotted = (colon === -1 ? name : name.slice(0, colon)).split('.');
  const test = colon === -1 ? '' : name.slice(colon + 1);
  const path = dotted.slice(0, -1);
  const last = dotted.at(-1) ?? '';
  if (path.length > LIMITS.crossings) {
    const message = `"${parameter}" crosses more than ${LIMITS.crossings} relations (crossings)`;
    throw invalidParameter(parameter, message);
  }
  let at = relation;
  for (const each of path) {
    const crossing = crossingOf(relations, at, each);
    if (crossing === undefined) throw unknown(at, each);
    at = crossing.relation;
  }
  const column = at.columns.find((each) => each.name === last);
  if (column === undefined) throw unknown(at, last);
  guard?.requireReadable(parameter, at, column);
  return { path, condition: new ConditionReader(relations, parameter).readParameter(column, test, values) };
}

/** Reads the condition of a `where`, a tree of JSON. Throws HttpProblem. */
export function readWhere(
  relations: Relations,
  relation: Relation,
  text: string,
  {
    parameter = 'where',
    guard,
  }: { readonly parameter?: string; readonly guard?: ColumnGuard | undefined } = {},
): Filter {
  let tree: unknown;
  try {
    tree = parseJsonText(text);
  } catch {
    const message = `"${parameter}" takes a condition as JSON, such as {"title": {"prefix": "E"}}`;
    throw invalidParameter(parameter, message);
  }
  return { path: [], condition: new ConditionReader(relations, parameter, guard).readTree(relation, tree) };
}

/** Puts the conditions of parameters with the same path into one, so that one row meets all of them. */
export function joined(relations: Relations, root: Relation, found: readonly Filter[]): Condition {
  const own = found.filter(({ path }) => path.length === 0).map(({ condition }) => condition);
  const byName = Map.groupBy(
    found.filter(({ path }) => path.length > 0),
    ({ path }) => path[0] ?? '',
  );
  for (const [name, inside] of byName) {
    const crossing = crossingOf(relations, root, name);
    if (crossing === undefined) continue;
    const rest = inside.map(({ path, condition }) => ({ path: path.slice(1), condition }));
    own.push(across(crossing, 'some', joined(relations, crossing.relation, rest)));
  }
  return own.length === 1 && own[0] !== undefined ? own[0] : { is: 'and', all: own };
}
