import {
  GraphQLBoolean,
  GraphQLEnumType,
  type GraphQLFieldConfig,
  type GraphQLFieldConfigMap,
  GraphQLID,
  type GraphQLInputFieldConfigMap,
  GraphQLInputObjectType,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLLeafType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLResolveInfo,
  GraphQLString,
} from 'graphql';
import { LIMIT } from '../../relations/lists.ts';
import {
  type Column,
  type ColumnType,
  type Relation,
  USER_COLUMNS,
  USERS,
} from '../../relations/relation.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import { linkOf } from '../../relations/selections/selection.ts';
import { AGGREGATE_ENDINGS, aggregateEndings, aggregateType } from '../aggregates/aggregate-types.ts';
import { createdFields, patchedFields, upsertedFields } from '../inputs/write-inputs.ts';
import { FILTERED, filterName, filterOf, listOf, testsOf } from './filters.ts';
import { type LazyFields, LazyObjectType } from './lazy.ts';
import { RELATION_SCALARS, scalarOf } from './scalars.ts';

/** What a field of a row's type shows: `extensions.member`. */
export type RowMember =
  | { readonly is: 'column'; readonly index: number; readonly isText: boolean }
  | { readonly is: 'version' }
  /** The rows that a reference or an inverse leads to. */
  | { readonly is: 'related'; readonly name: string; readonly relation: Relation };

/** The name of the type of a relation's rows, with which those of its other types begin. */
export function typeNameOf({ one }: Pick<Relation, 'one'>): string {
  return capitalized(one);
}

export function capitalized(name: string): string {
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

/** Where a row that the executor completes keeps the rows of a field, by the field's key in the result. */
export function relatedKey(key: string): string {
  return ` ${key}`;
}

/** The columns of a unique or of the key as the value of an enum. */
function uniqueName(columns: readonly string[]): string {
  return columns.join('_and_');
}

/** The uniques of a relation by which a row can be upserted, by their names. */
export function uniquesOf({ key, unique }: Relation): ReadonlyMap<string, readonly string[]> {
  return new Map([key, ...unique].map((columns) => [uniqueName(columns), columns]));
}

const IDS: readonly ColumnType['kind'][] = ['serial', 'integer', 'bigint', 'uuid', 'text'];

/**
 * Whether a column is the `id` of its rows, of the type ID: a text, as Relay and the caches of clients expect. Other
 * columns with the same values keep their types.
 */
export function isId({ key }: Pick<Relation, 'key'>, { name, type }: Column): boolean {
  return name === 'id' && key.length === 1 && key[0] === name && IDS.includes(type.kind);
}

/** Whether the values of a type are numbers in JSON, and texts as an ID. */
export function isNumber({ kind }: ColumnType): boolean {
  return kind === 'serial' || kind === 'integer';
}

/** The version of a row, which every row has. */
export const VERSION = '_version';

const CONDITIONS = ['Where', 'ListWhere', 'Order'] as const;
/** What users have besides, if their type has what a declaration adds to them. */
const PAGES = ['Connection', 'Edge'] as const;
const OTHERS = ['', 'Connection', 'Edge', 'Change', 'Create', 'Upsert', 'Patch', 'Unique'] as const;

/** Whether a rule may hide rows of a relation from some callers, so that a field with one may be null. */
export function mayHide({ rules }: Relation): boolean {
  return rules !== undefined && !rules.read.includes('anyone');
}

/** Whether rows may leave what a caller may read as they change; of these, the caller gets the key alone. */
export function mayLeave({ rules }: Relation): boolean {
  return rules?.read.some((grant) => typeof grant === 'object' && 'where' in grant) === true;
}

function suffixesOf(relation: Relation, extendsUsers: boolean): readonly string[] {
  if (relation.name === USERS) return extendsUsers ? [...CONDITIONS, ...PAGES] : CONDITIONS;
  return [...CONDITIONS, ...OTHERS, ...aggregateEndings(relation), ...(mayLeave(relation) ? ['Key'] : [])];
}

/** The names of the types of a relation. `extendsUsers`: the type of users has what a declaration adds to them. */
export function typeNames(relation: Relation, extendsUsers: boolean): readonly string[] {
  const base = typeNameOf(relation);
  const enums = relation.columns.filter(isEnum).map((column) => enumName(relation, column));
  return [
    ...suffixesOf(relation, extendsUsers).map((suffix) => `${base}${suffix}`),
    ...enums,
    ...enums.map((name) => `${name}Filter`),
  ];
}

/** Whether the values of a column are those of an enum of GraphQL. */
function isEnum({ type }: Column): boolean {
  return type.kind === 'enum' && scalarOf(type) === undefined;
}

/**
 * The types of relations. Each is made when it is first asked for, and knows its fields when these are first asked
 * for.
 */
export class RelationTypes {
  readonly relations: Relations;
  readonly user: GraphQLObjectType;
  /** The relation of each type, by name; undefined for those that relations share. */
  readonly #owners: ReadonlyMap<string, Relation | undefined>;
  readonly #made = new Map<string, GraphQLNamedType>();

  /**
   * `user` is the type of users, to which a declaration adds fields if it `extendsUsers`. Names have been checked by
   * `schemaProblems`.
   */
  constructor(relations: Relations, user: GraphQLObjectType, extendsUsers: boolean) {
    this.relations = relations;
    const users = relations.get(USERS);
    this.user = extendsUsers && users ? new LazyObjectType(user, this.#members(users)) : user;
    const owners = new Map<string, Relation | undefined>(SHARED_NAMES.map((name) => [name, undefined]));
    for (const relation of relations.values()) {
      for (const name of typeNames(relation, extendsUsers)) owners.set(name, relation);
    }
    this.#owners = owners;
  }

  /** The names of all types. */
  get names(): Iterable<string> {
    return this.#owners.keys();
  }

  /** How many types were made so far. */
  get made(): number {
    return this.#made.size;
  }

  find(name: string): GraphQLNamedType | undefined {
    let type = this.#made.get(name);
    if (type === undefined && this.#owners.has(name)) {
      const relation = this.#owners.get(name);
      type = relation === undefined ? SHARED.get(name)?.() : this.#make(relation, name);
      if (type !== undefined) this.#made.set(name, type);
    }
    return type;
  }

  get<T extends GraphQLNamedType = GraphQLNamedType>(name: string): T {
    const type = this.find(name);
    if (type === undefined) throw new Error(`There is no type ${name}`);
    return type as T;
  }

  /** The type of the rows. */
  row(relation: Relation): GraphQLObjectType {
    return relation.name === USERS ? this.user : this.get(typeNameOf(relation));
  }

  /** The type of the keys of rows that may leave what a caller may read. */
  key(relation: Relation): GraphQLObjectType {
    return this.get(`${typeNameOf(relation)}Key`);
  }

  /** The arguments that choose rows of a list. */
  listArguments(
    relation: Relation,
  ): Record<string, { readonly type: GraphQLInputType; readonly description: string }> {
    const name = typeNameOf(relation);
    return {
      where: { type: this.get<GraphQLInputObjectType>(`${name}Where`), description: 'What the rows meet.' },
      orderBy: {
        type: listOf(this.get<GraphQLInputObjectType>(`${name}Order`)),
        description: 'The order of the rows. The key closes it.',
      },
    };
  }

  /** The arguments that are the key of a row. */
  keyArguments(relation: Relation): Record<string, { readonly type: GraphQLNonNull<GraphQLLeafType> }> {
    return Object.fromEntries(
      relation.key.map((name) => [
        name,
        { type: new GraphQLNonNull(this.#shown(relation, columnOf(relation, name))) },
      ]),
    );
  }

  /** The type of a column's values. */
  leaf(relation: Relation, column: Column): GraphQLLeafType {
    return scalarOf(column.type) ?? this.get<GraphQLEnumType>(enumName(relation, column));
  }

  /** The type of a column of a row, of a key and of conditions. */
  #shown(relation: Relation, column: Column): GraphQLLeafType {
    return isId(relation, column) ? GraphQLID : this.leaf(relation, column);
  }

  #make(relation: Relation, name: string): GraphQLNamedType {
    const plural = relation.name;
    const base = typeNameOf(relation);
    const input = (description: string, fields: () => GraphQLInputFieldConfigMap) =>
      new GraphQLInputObjectType({ name, description, fields });
    const object = (description: string, fields: () => GraphQLFieldConfigMap<unknown, unknown>) =>
      new GraphQLObjectType({ name, description, fields });
    switch (name.slice(base.length)) {
      case '':
        return object(`A row of ${plural}.`, () => madeOf(this.#members(relation)));
      case 'Where':
        return input(`Conditions on ${plural}, all of which hold.`, () => this.#where(relation));
      case 'ListWhere':
        return input(`Conditions on several ${plural}.`, () => this.#quantifiers(base));
      case 'Order':
        return new GraphQLInputObjectType({
          name,
          description: `A column by which ${plural} are sorted.`,
          fields: () => this.#order(relation),
          isOneOf: true,
        });
      case 'Create':
        return input(`A new row of ${plural}, perhaps with new rows of other relations within it.`, () =>
          createdFields(relation, this),
        );
      case 'Upsert':
        return input(`A row of ${plural} that may be there already.`, () => upsertedFields(relation, this));
      case 'Patch':
        return input(`Changes to a row of ${plural}.`, () => patchedFields(relation, this));
      case 'Unique':
        return uniqueEnum(name, relation);
      case 'Connection':
        return object(`A page of ${plural}.`, () => this.#connection(base));
      case 'Edge':
        return object(`A row of a page of ${plural}.`, () => ({
          node: { type: new GraphQLNonNull(this.row(relation)) },
          cursor: { type: required.text, description: 'Where the row stands in the list.' },
        }));
      case 'Key':
        if (mayLeave(relation))
          return object(`The key of a row of ${plural}.`, () => this.keyArguments(relation));
        break;
      case 'Change':
        return object(`A change of a row of ${plural}.`, () => this.#change(relation));
    }
    const aggregate = aggregateType(relation, base, name.slice(base.length), this);
    if (aggregate !== undefined) return aggregate;
    const enums = new Map(relation.columns.filter(isEnum).map((each) => [enumName(relation, each), each]));
    const column = enums.get(name);
    if (column !== undefined) return enumOf(name, column);
    const own = this.get<GraphQLEnumType>(name.slice(0, -'Filter'.length));
    return filterOf(own, ['eq', 'ne', 'in', 'isNull']);
  }

  #change(relation: Relation): GraphQLFieldConfigMap<unknown, unknown> {
    return {
      position: { type: required.text, description: 'The place of the change, after which to go on.' },
      type: { type: new GraphQLNonNull(CHANGE_TYPE) },
      ...(mayLeave(relation) && { key: { type: new GraphQLNonNull(this.key(relation)) } }),
      row: {
        type: mayLeave(relation) ? this.row(relation) : new GraphQLNonNull(this.row(relation)),
        description: mayLeave(relation)
          ? 'The row after the change, or before its removal; null if the caller may not read it any more.'
          : 'The row after the change, or before its removal.',
      },
    };
  }

  /** The fields of rows; of users those that their declaration adds. */
  #members(relation: Relation): LazyFields {
    const fields = new Map<string, () => GraphQLFieldConfig<unknown, unknown>>();
    const isOfUsers = relation.name === USERS;
    for (const [index, column] of relation.columns.entries()) {
      if (isOfUsers && USER_COLUMNS.includes(column.name)) continue;
      fields.set(column.name, () => this.#column(relation, column, index));
    }
    for (const { name, to, columns } of relation.references) {
      fields.set(name, () => {
        const target = this.#relation(to);
        const isNullable = mayHide(target) || columns.some((each) => columnOf(relation, each).nullable);
        const type = this.row(target);
        return { type: isNullable ? type : new GraphQLNonNull(type), ...related(name, target) };
      });
    }
    for (const { name } of [...relation.inverses, ...relation.many]) {
      const target = linkOf(this.relations, relation, name)?.relation;
      if (target !== undefined) fields.set(name, () => this.#list(name, target));
    }
    if (isOfUsers) return fields;
    return fields.set(VERSION, () => ({
      type: this.get<GraphQLLeafType>('SafeInt'),
      description:
        'Higher after every change of the row. Updates take it as `ifVersion`. Events do not have it.',
      extensions: { member: { is: 'version' } satisfies RowMember },
    }));
  }

  #column(relation: Relation, column: Column, index: number): GraphQLFieldConfig<unknown, unknown> {
    const type = this.#shown(relation, column);
    const member: RowMember = { is: 'column', index, isText: type === GraphQLID && isNumber(column.type) };
    return { type: column.nullable ? type : new GraphQLNonNull(type), extensions: { member } };
  }

  /** A field with several rows of another relation. */
  #list(name: string, target: Relation): GraphQLFieldConfig<unknown, unknown> {
    const limit = { type: GraphQLInt, description: 'How many rows at most.' };
    return {
      type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(this.row(target)))),
      args: { ...this.listArguments(target), limit },
      ...related(name, target),
    };
  }

  #connection(name: string): GraphQLFieldConfigMap<unknown, unknown> {
    return {
      edges: {
        type: new GraphQLNonNull(
          new GraphQLList(new GraphQLNonNull(this.get<GraphQLObjectType>(`${name}Edge`))),
        ),
      },
      pageInfo: { type: new GraphQLNonNull(PAGE_INFO) },
      totalCount: {
        type: new GraphQLNonNull(this.get<GraphQLLeafType>('SafeInt')),
        description: 'How many rows the list has. They are counted only if this is selected.',
      },
    };
  }

  #where(relation: Relation): GraphQLInputFieldConfigMap {
    const where = this.get<GraphQLInputObjectType>(`${typeNameOf(relation)}Where`);
    const fields: Record<string, { readonly type: GraphQLInputType }> = {
      and: { type: listOf(where) },
      or: { type: listOf(where) },
      not: { type: where },
    };
    for (const column of relation.columns) {
      fields[column.name] = {
        type: this.get<GraphQLInputObjectType>(filterName(this.#shown(relation, column))),
      };
    }
    for (const { name, to } of relation.references) {
      fields[name] = { type: this.get<GraphQLInputObjectType>(`${typeNameOf(this.#relation(to))}Where`) };
    }
    for (const { name } of [...relation.inverses, ...relation.many]) {
      const target = linkOf(this.relations, relation, name)?.relation;
      if (target === undefined) continue;
      fields[name] = { type: this.get<GraphQLInputObjectType>(`${typeNameOf(target)}ListWhere`) };
    }
    return fields;
  }

  #quantifiers(name: string): GraphQLInputFieldConfigMap {
    const type = this.get<GraphQLInputObjectType>(`${name}Where`);
    return {
      some: { type, description: 'There is such a row.' },
      none: { type, description: 'There is no such row.' },
      every: { type, description: 'All rows are so.' },
    };
  }

  #order(relation: Relation): GraphQLInputFieldConfigMap {
    const fields: Record<string, { readonly type: GraphQLInputType }> = {};
    for (const { name, type } of relation.columns) {
      if (type.kind !== 'json' && type.kind !== 'bytes') fields[name] = { type: DIRECTION };
    }
    for (const { name, to } of relation.references) {
      fields[name] = { type: this.get<GraphQLInputObjectType>(`${typeNameOf(this.#relation(to))}Order`) };
    }
    return fields;
  }

  /** The type of new rows of a relation. */
  newRow(relation: string): GraphQLInputObjectType {
    return this.get(`${typeNameOf(this.#relation(relation))}Create`);
  }

  #relation(name: string): Relation {
    const found = this.relations.get(name);
    if (found === undefined) throw new Error(`There is no relation ${name}`);
    return found;
  }
}

const required = { text: new GraphQLNonNull(GraphQLString), flag: new GraphQLNonNull(GraphQLBoolean) };

function columnOf(relation: Relation, name: string): Column {
  const column = relation.columns.find((each) => each.name === name);
  if (column === undefined) throw new Error(`${relation.name} has no column ${name}`);
  return column;
}

function madeOf(fields: LazyFields): GraphQLFieldConfigMap<unknown, unknown> {
  return Object.fromEntries(Array.from(fields, ([name, make]) => [name, make()]));
}

/** A field with rows of another relation, which the row that it is read from has already. */
function related(name: string, relation: Relation) {
  const member: RowMember = { is: 'related', name, relation };
  return {
    resolve: (row: unknown, _given: unknown, _context: unknown, { path }: GraphQLResolveInfo) =>
      (row as Readonly<Record<string, unknown>>)[relatedKey(String(path.key))],
    extensions: { member, access: relation.name },
  };
}

/** The name of the enum of a column: `BookKind`. */
function enumName(relation: Relation, column: Column): string {
  const name = capitalized(column.name);
  const isTaken = [...suffixesOf(relation, false), ...OTHERS, ...AGGREGATE_ENDINGS].some(
    (suffix) => suffix === name,
  );
  return `${typeNameOf(relation)}${name}${isTaken ? 'Value' : ''}`;
}

function enumOf(name: string, { name: column, type }: Column): GraphQLEnumType {
  const values = type.kind === 'enum' ? type.values : [];
  return new GraphQLEnumType({
    name,
    description: `The values of ${column}.`,
    values: Object.fromEntries(values.map((value) => [value, { value }])),
  });
}

function uniqueEnum(name: string, relation: Relation): GraphQLEnumType {
  return new GraphQLEnumType({
    name,
    description: `The columns that tell rows of ${relation.name} apart.`,
    values: Object.fromEntries(Array.from(uniquesOf(relation), ([each, value]) => [each, { value }])),
  });
}

const DIRECTION = new GraphQLEnumType({
  name: 'OrderDirection',
  description: 'Rows without a value come last in both.',
  values: { ASC: {}, DESC: {} },
});

const CHANGE_TYPE = new GraphQLEnumType({
  name: 'ChangeType',
  description: 'What happened to a row.',
  values: { created: {}, updated: {}, deleted: {} },
});

const PAGE_INFO = new GraphQLObjectType({
  name: 'PageInfo',
  description: "The place of a page in its list, as in Relay's connections.",
  fields: {
    hasNextPage: { type: required.flag },
    hasPreviousPage: { type: required.flag },
    startCursor: { type: GraphQLString },
    endCursor: { type: GraphQLString },
  },
});

/** The number of rows of a list without a limit, and the most that it may have. */
export const LIST_LIMIT = LIMIT;

/** How the types that relations share are made, by name. */
const SHARED: ReadonlyMap<string, () => GraphQLNamedType> = new Map([
  ...[...RELATION_SCALARS, DIRECTION, CHANGE_TYPE, PAGE_INFO].map(
    (type): [string, () => GraphQLNamedType] => [type.name, () => type],
  ),
  ...FILTERED.map((type): [string, () => GraphQLNamedType] => [
    filterName(type),
    () => filterOf(type, testsOf(type)),
  ]),
]);

/** The names of the types that relations share. */
export const SHARED_NAMES: readonly string[] = [...SHARED.keys()];
