import {
  GraphQLEnumType,
  type GraphQLFieldConfigMap,
  GraphQLFloat,
  type GraphQLInputType,
  type GraphQLLeafType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
} from 'graphql';
import type { Column, Relation } from '../../relations/relation.ts';
import { type Aggregate, isGroup, takes } from '../../relations/selections/aggregates.ts';

/** What a field of an aggregate shows: `extensions.aggregate`. */
export type AggregateMember =
  | { readonly is: 'group'; readonly column: Column }
  | { readonly is: 'result'; readonly aggregate: Aggregate };

/** The types from which those of aggregates are made. */
export interface AggregateSources {
  get<T extends GraphQLNamedType>(name: string): T;
  /** The type of a column's values. */
  leaf(relation: Relation, column: Column): GraphQLLeafType;
}

type ColumnFunction = Exclude<Aggregate['is'], 'count'>;

/** The functions of columns, by the endings of their types. */
const FUNCTIONS: Readonly<Record<string, ColumnFunction>> = {
  CountDistinct: 'countDistinct',
  Sum: 'sum',
  Avg: 'avg',
  Min: 'min',
  Max: 'max',
};

/** How the names of the types of aggregates may end. */
export const AGGREGATE_ENDINGS: readonly string[] = [
  'Aggregate',
  'Group',
  'GroupBy',
  ...Object.keys(FUNCTIONS),
];

/** The endings of the types that a relation has: those with fields. */
export function aggregateEndings(relation: Relation): readonly string[] {
  const functions = Object.entries(FUNCTIONS).flatMap(([ending, is]) =>
    aggregated(relation, is).length === 0 ? [] : [ending],
  );
  return ['Aggregate', ...(grouped(relation).length === 0 ? [] : ['Group', 'GroupBy']), ...functions];
}

/** The arguments of aggregates that make groups. */
export function groupArguments(
  relation: Relation,
  base: string,
  types: AggregateSources,
): Record<string, { readonly type: GraphQLInputType; readonly description: string }> {
  if (grouped(relation).length === 0) return {};
  const column = types.get<GraphQLEnumType>(`${base}GroupBy`);
  return {
    groupBy: {
      type: new GraphQLList(new GraphQLNonNull(column)),
      description: 'The columns whose equal values make a group; without any, all rows are one.',
    },
  };
}

/** The type of aggregates with the name `base` and this ending; undefined if none ends so. */
export function aggregateType(
  relation: Relation,
  base: string,
  ending: string,
  types: AggregateSources,
): GraphQLNamedType | undefined {
  const name = `${base}${ending}`;
  const object = (description: string, fields: () => GraphQLFieldConfigMap<unknown, unknown>) =>
    new GraphQLObjectType({ name, description, fields });
  switch (ending) {
    case 'Aggregate':
      return object(`A group of ${relation.name}.`, () => membersOf(relation, base, types));
    case 'Group':
      return object(`The values that a group of ${relation.name} has in common.`, () =>
        fieldsOf(grouped(relation), (column) => ({
          type: types.leaf(relation, column),
          extensions: { aggregate: { is: 'group', column } satisfies AggregateMember },
        })),
      );
    case 'GroupBy':
      return new GraphQLEnumType({
        name,
        description: `A column by which ${relation.name} are grouped.`,
        values: Object.fromEntries(grouped(relation).map((column) => [column.name, { value: column }])),
      });
    default: {
      const is = FUNCTIONS[ending];
      if (is === undefined) return undefined;
      return object(DESCRIPTIONS[is], () =>
        fieldsOf(aggregated(relation, is), (column) => ({
          type: resultOf(relation, is, column, types),
          extensions: { aggregate: { is: 'result', aggregate: { is, column } } satisfies AggregateMember },
        })),
      );
    }
  }
}

const DESCRIPTIONS: Readonly<Record<ColumnFunction, string>> = {
  countDistinct: 'How many values a group has.',
  sum: 'The sums of a group, exact but for floating-point numbers. Null without values.',
  avg: 'The averages of a group, those of whole numbers and decimals with 6 digits more. Null without values.',
  min: 'The lowest values of a group.',
  max: 'The highest values of a group.',
};

function membersOf(
  relation: Relation,
  base: string,
  types: AggregateSources,
): GraphQLFieldConfigMap<unknown, unknown> {
  const within = (ending: string) => ({
    type: new GraphQLNonNull(types.get<GraphQLObjectType>(`${base}${ending}`)),
  });
  const endings = aggregateEndings(relation);
  return {
    ...(endings.includes('Group') ? { group: within('Group') } : {}),
    count: {
      type: new GraphQLNonNull(types.get<GraphQLLeafType>('SafeInt')),
      description: 'How many rows the group has.',
      extensions: { aggregate: { is: 'result', aggregate: { is: 'count' } } satisfies AggregateMember },
    },
    ...Object.fromEntries(
      Object.entries(FUNCTIONS)
        .filter(([ending]) => endings.includes(ending))
        .map(([ending, is]) => [is, within(ending)]),
    ),
  };
}

function fieldsOf(
  columns: readonly Column[],
  field: (column: Column) => GraphQLFieldConfigMap<unknown, unknown>[string],
): GraphQLFieldConfigMap<unknown, unknown> {
  return Object.fromEntries(columns.map((column) => [column.name, field(column)]));
}

/** Sums of 64-bit numbers may be larger than a BigInt, and averages have digits behind the point. */
function resultOf(
  relation: Relation,
  is: ColumnFunction,
  column: Column,
  types: AggregateSources,
): GraphQLOutputType {
  const { kind } = column.type;
  switch (is) {
    case 'countDistinct':
      return new GraphQLNonNull(types.get<GraphQLLeafType>('SafeInt'));
    case 'min':
    case 'max':
      return types.leaf(relation, column);
    case 'sum':
      if (kind === 'serial' || kind === 'integer') return types.get<GraphQLLeafType>('SafeInt');
      break;
    case 'avg':
      break;
  }
  return kind === 'number' ? GraphQLFloat : types.get<GraphQLLeafType>('Decimal');
}

/** Names that no value of an enum may have. */
const NO_VALUES: readonly string[] = ['true', 'false', 'null'];

function grouped({ columns }: Relation): readonly Column[] {
  return columns.filter(
    (column) => isMember(column) && isGroup(column.type) && !NO_VALUES.includes(column.name),
  );
}

function aggregated({ columns }: Relation, is: ColumnFunction): readonly Column[] {
  return columns.filter((column) => isMember(column) && takes(is, column.type.kind));
}

/** The caches of clients would take an object with an `id` for a row, and merge it with others. */
function isMember({ name }: Column): boolean {
  return name !== 'id';
}
