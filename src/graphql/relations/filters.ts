import {
  GraphQLBoolean,
  GraphQLID,
  GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  GraphQLList,
  GraphQLNonNull,
} from 'graphql';
import type { ColumnType } from '../../relations/relation.ts';
import { scalarOf } from './scalars.ts';

const KINDS: readonly ColumnType[] = [
  { kind: 'serial', open: false },
  { kind: 'integer', min: 0, max: 1 },
  { kind: 'bigint' },
  { kind: 'decimal', precision: 1, scale: 0 },
  { kind: 'number' },
  { kind: 'boolean' },
  { kind: 'text', max: 1, fold: false },
  { kind: 'date' },
  { kind: 'timestamp' },
  { kind: 'uuid' },
  { kind: 'json', maxBytes: 1 },
  { kind: 'bytes', max: 1 },
];
/** The scalars of columns that conditions test. */
export const FILTERED = [GraphQLID, ...KINDS.map((type) => scalarOf(type) as GraphQLLeafType)];

const ORDERED = ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte', 'isNull'] as const;
type Test = (typeof ORDERED)[number] | 'prefix' | 'contains';

export function testsOf({ name }: GraphQLLeafType): readonly Test[] {
  switch (name) {
    case 'JSON':
      return ['isNull'];
    case 'Boolean':
    case 'Bytes':
      return ['eq', 'ne', 'in', 'isNull'];
    case 'String':
      return [...ORDERED, 'prefix', 'contains'];
    default:
      return ORDERED;
  }
}

export function filterName({ name }: GraphQLLeafType): string {
  return `${name}Filter`;
}

/** The tests of a column, all of which hold. */
export function filterOf(type: GraphQLLeafType, tests: readonly Test[]): GraphQLInputObjectType {
  const typeOf = (test: Test): GraphQLInputType => {
    if (test === 'isNull') return GraphQLBoolean;
    return test === 'in' ? listOf(type) : type;
  };
  return new GraphQLInputObjectType({
    name: filterName(type),
    description: `Tests of a column of ${type.name}, all of which hold.`,
    fields: () => Object.fromEntries(tests.map((test) => [test, { type: typeOf(test) }])),
  });
}

/** A list without nulls. */
export function listOf(type: GraphQLInputObjectType | GraphQLLeafType): GraphQLInputType {
  return new GraphQLList(new GraphQLNonNull(type));
}
