import type { FieldPlan } from '@portico/graphql-plans';
import type { GraphQLObjectType, VariableValues } from 'graphql';
import { getNamedType } from 'graphql';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { type Column, type Relation, USERS } from '../../relations/relation.ts';
import {
  type Condition,
  ConditionReader,
  invalidParameter,
  type Relations,
} from '../../relations/rows/conditions.ts';
import { type RowOrder, readSort, withKey } from '../../relations/rows/orders.ts';
import type { RowListShape } from '../../relations/rows/row-lists.ts';
import { isAll } from '../../relations/rules/rule-trees.ts';
import type { RowView } from '../../relations/rules/views.ts';
import {
  checkSelection,
  linkOf,
  type SelectedMember,
  type Selection,
} from '../../relations/selections/selection.ts';
import { refusal } from './refusals.ts';
import { isId, isNumber, LIST_LIMIT, type RowMember, relatedKey, VERSION } from './types.ts';

/** What a document selects of the rows of a relation, without the values of arguments. */
interface RowsPlan {
  readonly relation: Relation;
  readonly type: GraphQLObjectType;
  readonly members: readonly MemberPlan[];
  /** Whether a field here or below has a resolver of the user's, so that rows have to be completed one by one. */
  readonly isOpen: boolean;
}

type MemberPlan = { readonly key: string } & (
  | { readonly is: 'column'; readonly index: number; readonly isText: boolean }
  | { readonly is: 'version' }
  | { readonly is: 'type' }
  /** A field of the user's. */
  | { readonly is: 'own' }
  | { readonly is: 'rows'; readonly name: string; readonly field: FieldPlan; readonly rows: RowsPlan }
);

/** The arguments of a list as they are read. */
interface ListArguments {
  readonly where: Condition;
  readonly order: readonly RowOrder[];
}

/** What a field selects of rows, with its arguments. */
export interface SelectedRows {
  readonly shape: SelectedShape;
  /** Whether the JSON of the rows is the result; otherwise the executor completes them. */
  readonly isWhole: boolean;
  /** How many values a row has at least. */
  readonly values: number;
}

/** A list and the members of its rows. Statements are kept with it. */
interface SelectedShape extends RowListShape {
  readonly selection: Selection;
}

/** Memory of selections in bytes, and what one takes for each of its fields and characters of its arguments. */
const MAX_BYTES = 4 * 1024 * 1024;
const FIELD_BYTES = 300;
const CHARACTER_BYTES = 16;

/** The view of the caller who selects; undefined without rules. It is never left out, so that none is forgotten. */
type Viewer = RowView | undefined;

/**
 * Reads what fields select into selections of rows: once per field of a document, values of its arguments and view of a
 * caller, since statements are kept with the selection, and what a caller may not read is refused as it is read.
 */
export class SelectionReader {
  readonly relations: Relations;
  readonly #maxValues: number;
  readonly #plans = new WeakMap<FieldPlan, RowsPlan>();
  readonly #numbers = new WeakMap<RowsPlan, number>();
  readonly #read = new GenerationalCache<SelectedRows>(MAX_BYTES);
  #next = 0;

  /** `maxValues` is the maximum number of values of a result. */
  constructor(relations: Relations, maxValues: number) {
    this.relations = relations;
    this.#maxValues = maxValues;
  }

  /**
   * Reads the selection of a field with rows of a relation, `rows` of them at most. Throws GraphQLError or
   * HttpProblem.
   */
  read(
    field: FieldPlan,
    relation: Relation,
    variables: VariableValues,
    { where = null, orderBy = null, rows }: { where?: unknown; orderBy?: unknown; rows: number },
    view: Viewer,
  ): SelectedRows {
    const plan = this.#planOf(field, relation);
    const given: unknown[] = [where, orderBy];
    this.#collect(plan, variables, given);
    const number = this.#numbers.get(plan) ?? this.#next++;
    this.#numbers.set(plan, number);
    const viewed = view?.key ?? '';
    const key = `${number} ${JSON.stringify(given)}${viewed}`;
    let found = this.#read.get(key);
    if (found === undefined) {
      const list = this.#list(relation, where, orderBy, { parameter: 'where', view });
      this.check(field, relation, view);
      const { selection, values } = this.#select(plan, variables, plan.isOpen, { above: '', view });
      checkSelection(selection, field.key);
      found = { shape: { ...list, fields: undefined, selection }, isWhole: !plan.isOpen, values };
      this.#read.set(key, found, CHARACTER_BYTES * key.length + FIELD_BYTES * (given.length + sizeOf(plan)));
    }
    if (found.values * rows > this.#maxValues) {
      throw refusal(
        'LIMIT_EXCEEDED',
        `The result may have more than ${this.#maxValues} values (maxResultValues); give its lists lower limits`,
        { limit: 'maxResultValues' },
      );
    }
    return found;
  }

  /** A list of rows of which nothing is shown. Throws HttpProblem. */
  list(
    relation: Relation,
    { where, orderBy }: { where?: unknown; orderBy?: unknown },
    view: Viewer,
  ): SelectedRows {
    const members: readonly SelectedMember[] = [{ is: 'constant', name: '_', json: '0' }];
    const list = this.#list(relation, where, orderBy, { parameter: 'where', view });
    return {
      shape: { ...list, fields: undefined, selection: { relation, members } },
      isWhole: true,
      values: 1,
    };
  }

  /** Checks that a caller may read the columns that a field selects of rows. Throws GraphQLError or HttpProblem. */
  check(field: FieldPlan, relation: Relation, view: Viewer): void {
    if (view !== undefined) this.#check(this.#planOf(field, relation), field.key, view);
  }

  #check({ relation, members }: RowsPlan, place: string, view: RowView): void {
    for (const member of members) {
      if (member.is === 'column')
        view.requireReadable(place, relation, relation.columns[member.index] as Column);
      if (member.is !== 'rows') continue;
      const through = linkOf(this.relations, relation, member.name)?.through?.relation;
      if (through !== undefined && !isAll(view.of(through).read)) throw unconnected(member.name, through);
      this.#check(member.rows, member.name, view);
    }
  }

  #planOf(field: FieldPlan, relation: Relation): RowsPlan {
    let plan = this.#plans.get(field);
    if (plan === undefined) {
      plan = rowsPlan(field, relation);
      this.#plans.set(field, plan);
    }
    return plan;
  }

  /** Adds the arguments of all lists within the rows. */
  #collect({ members }: RowsPlan, variables: VariableValues, given: unknown[]): void {
    for (const member of members) {
      if (member.is !== 'rows') continue;
      if (member.field.definition.args.length > 0) given.push(member.field.readArguments(variables));
      this.#collect(member.rows, variables, given);
    }
  }

  #select(
    { relation, type, members }: RowsPlan,
    variables: VariableValues,
    isCompleted: boolean,
    { above, view }: { above: string; view: Viewer },
  ): { readonly selection: Selection; readonly values: number } {
    const selected: SelectedMember[] = [];
    let values = 1;
    if (isCompleted) {
      // Resolvers may read any column that the caller may.
      const readable = view?.readableOf(relation) ?? relation.columns.keys();
      for (const column of readable) {
        const { name } = relation.columns[column] as Column;
        // The id of a user is a text wherever resolvers get one.
        const isText = relation.name === USERS && name === 'id';
        selected.push({ is: 'column', name, column, ...(isText && { isText }) });
      }
      if (relation.name !== USERS) selected.push({ is: 'version', name: VERSION });
    }
    for (const member of members) {
      const { key } = member;
      if (member.is !== 'rows') {
        values++;
        if (isCompleted || member.is === 'own') continue;
        if (member.is === 'type')
          selected.push({ is: 'constant', name: key, json: JSON.stringify(type.name) });
        else if (member.is === 'version') selected.push({ is: 'version', name: key });
        else
          selected.push({
            is: 'column',
            name: key,
            column: member.index,
            ...(member.isText && { isText: true }),
          });
        continue;
      }
      const { name, field, rows } = member;
      const link = linkOf(this.relations, relation, name);
      if (link === undefined) throw new Error(`${relation.name} has no ${name}`);
      const path = above === '' ? name : `${above}.${name}`;
      const { where, orderBy, limit } = field.readArguments(variables) as ListInput;
      const list = this.#list(link.relation, where, orderBy, { parameter: path, view });
      const within = this.#select(rows, variables, isCompleted, { above: path, view });
      values += within.values * (link.isReference ? 1 : (limit ?? 1));
      selected.push({
        is: 'rows',
        name: isCompleted ? relatedKey(key) : key,
        rows: {
          path,
          link,
          selection: within.selection,
          ...list,
          limit: limit == null ? undefined : limitOf(limit, path),
          after: undefined,
        },
      });
    }
    return { selection: { relation, members: selected }, values };
  }

  /** Reads the arguments of a list. Throws HttpProblem. */
  #list(
    relation: Relation,
    where: unknown,
    orderBy: unknown,
    { parameter, view }: { parameter: string; view: Viewer },
  ): ListArguments {
    const condition: Condition =
      where == null
        ? { is: 'and', all: [] }
        : new ConditionReader(this.relations, parameter, view).readTree(
            relation,
            withNumbers(this.relations, relation, where),
          );
    const terms = ((orderBy ?? []) as readonly unknown[]).map(termOf);
    const order =
      terms.length === 0
        ? withKey(relation, [])
        : readSort(this.relations, relation, terms.join(), { parameter: 'orderBy', guard: view });
    return { where: condition, order };
  }
}

interface ListInput {
  readonly where?: unknown;
  readonly orderBy?: unknown;
  readonly limit?: number | null;
}

/** The refusal of rows that rows of a relation connect of which the caller may not read all. */
function unconnected(name: string, through: Relation) {
  const message = `"${name}" leads over rows of ${through.name}, of which the caller may not read all`;
  return refusal('NOT_ALLOWED', message);
}

/** A limit within its bounds. Throws HttpProblem. */
export function limitOf(limit: number, parameter: string): number {
  if (limit >= 1 && limit <= LIST_LIMIT.max) return limit;
  throw invalidParameter(parameter, `"${parameter}" takes a limit from 1 to ${LIST_LIMIT.max}`);
}

/** A tree of conditions with numbers in place of the ids that are numbers. */
export function withNumbers(relations: Relations, relation: Relation, tree: unknown): unknown {
  if (typeof tree !== 'object' || tree === null || Array.isArray(tree)) return tree;
  return Object.fromEntries(
    Object.entries(tree).map(([name, given]): readonly [string, unknown] => {
      const within = (each: unknown, of = relation) => withNumbers(relations, of, each);
      if (name === 'and' || name === 'or')
        return [name, Array.isArray(given) ? given.map((each) => within(each)) : given];
      if (name === 'not') return [name, within(given)];
      const column = relation.columns.find((each) => each.name === name);
      if (column !== undefined) {
        const isText = isId(relation, column) && isNumber(column.type);
        return [name, isText ? mapped(given, numberOf) : given];
      }
      const link = linkOf(relations, relation, name);
      if (link === undefined) return [name, given];
      return [
        name,
        link.isReference
          ? within(given, link.relation)
          : mapped(given, (each) => within(each, link.relation)),
      ];
    }),
  );
}

/** An object with each of its members changed. */
function mapped(given: unknown, change: (value: unknown) => unknown): unknown {
  if (typeof given !== 'object' || given === null) return given;
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, change(value)]));
}

/** The number of an id, or those of several; other values as they are, which the column refuses. */
export function numberOf(id: unknown): unknown {
  if (Array.isArray(id)) return id.map(numberOf);
  return typeof id === 'string' && /^-?\d{1,16}$/.test(id) ? Number(id) : id;
}

/** A term of an order such as `-author.name`, from `{ author: { name: DESC } }`. */
function termOf(given: unknown): string {
  const path: string[] = [];
  let at = given;
  while (typeof at === 'object' && at !== null) {
    const [[name, inner] = ['', undefined]] = Object.entries(at);
    path.push(name);
    at = inner;
  }
  return `${at === 'DESC' ? '-' : ''}${path.join('.')}`;
}

function sizeOf({ members }: RowsPlan): number {
  return members.reduce((sum, member) => sum + 1 + (member.is === 'rows' ? sizeOf(member.rows) : 0), 1);
}

/** What a field selects of the rows that it has, or each of which it has in a list. */
function rowsPlan(field: FieldPlan, relation: Relation): RowsPlan {
  const type = getNamedType(field.definition.type) as GraphQLObjectType;
  const members = field.select(type).fields.map((each) => memberPlan(each, relation));
  const isOpen = members.some(
    (member) => member.is === 'own' || (member.is === 'rows' && member.rows.isOpen),
  );
  return { relation, type, members, isOpen };
}

function memberPlan(field: FieldPlan, relation: Relation): MemberPlan {
  const { key, name } = field;
  if (name === '__typename') return { key, is: 'type' };
  const member = field.definition.extensions.member as RowMember | undefined;
  if (member === undefined) {
    // Fields of users are those of the contract.
    const index = relation.columns.findIndex((column) => column.name === name);
    const isOwn = relation.name !== USERS || field.definition.resolve !== undefined || index === -1;
    return isOwn ? { key, is: 'own' } : { key, is: 'column', index, isText: name === 'id' };
  }
  if (member.is === 'column') return { key, ...member };
  if (member.is === 'version') return { key, is: 'version' };
  return { key, is: 'rows', name: member.name, field, rows: rowsPlan(field, member.relation) };
}
