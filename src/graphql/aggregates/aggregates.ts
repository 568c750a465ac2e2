import type { FieldPlan, ResolveSelection } from '@portico/graphql-plans';
import { type GraphQLObjectType, getNamedType, isObjectType } from 'graphql';
import { codecOf } from '../../relations/codecs.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import { invalidParameter } from '../../relations/rows/conditions.ts';
import {
  type Aggregate,
  type AggregateRow,
  type Aggregation,
  checkedAggregation,
} from '../../relations/selections/aggregates.ts';
import type { ReadOptions } from '../relations/reads.ts';
import { showing } from '../relations/refusals.ts';
import type { AggregateMember } from './aggregate-types.ts';

interface AggregateInput {
  readonly where?: unknown;
  readonly groupBy?: readonly Column[] | null;
}

/** Resolves `booksAggregate(where:, groupBy:)` to the groups, with the aggregates that the field selects. */
export function aggregateReader(
  { selections, rowsFor }: Pick<ReadOptions, 'selections' | 'rowsFor'>,
  relation: Relation,
): ResolveSelection {
  return (field, given, request) =>
    showing(async () => {
      const { where, groupBy } = given as AggregateInput;
      const group = groupBy ?? [];
      const aggregates = aggregatesOf(field, group);
      const caller = rowsFor(request);
      const list = selections.list(relation, { where }, caller.view);
      const asked = checkedAggregation(
        relation,
        { where: list.shape.where, group, aggregates },
        { guard: caller.view, group: 'groupBy' },
      );
      const rows = await caller.of(relation).aggregates.read(asked);
      return rows.map((row) => groupOf(asked, row));
    });
}

/** The aggregates that a field selects. Throws HttpProblem if it selects columns that are not those of groups. */
function aggregatesOf(field: FieldPlan, group: readonly Column[]): readonly Aggregate[] {
  const found = new Map<string, Aggregate>();
  for (const member of membersOf(field)) {
    if (member.is === 'result') {
      const { aggregate } = member;
      found.set('column' in aggregate ? `${aggregate.is} ${aggregate.column.name}` : aggregate.is, aggregate);
    } else if (!group.includes(member.column)) {
      const { name } = member.column;
      throw invalidParameter('groupBy', `"group" selects "${name}"; add it to "groupBy"`);
    }
  }
  return found.size === 0 ? [{ is: 'count' }] : [...found.values()];
}

/** The members below a field. */
function membersOf(field: FieldPlan): readonly AggregateMember[] {
  const type = getNamedType(field.definition.type);
  if (!isObjectType(type)) return [];
  return field.select(type as GraphQLObjectType).fields.flatMap((each) => {
    if (each.name === '__typename') return [];
    const member = each.definition.extensions.aggregate as AggregateMember | undefined;
    return member === undefined ? membersOf(each) : [member];
  });
}

/** A group as the executor completes it. */
function groupOf({ group, aggregates }: Aggregation, { group: values, results }: AggregateRow) {
  const own = group.map(({ name, type }, i) => {
    const value = values[i] ?? null;
    return [name, value === null ? null : JSON.parse(codecOf(type).format(value))] as const;
  });
  const found: Record<string, unknown> = { group: Object.fromEntries(own), ...NO_RESULTS };
  for (const [i, each] of aggregates.entries()) {
    const result: unknown = JSON.parse(results[i] ?? 'null');
    found[each.is] =
      'column' in each ? { ...(found[each.is] as object), [each.column.name]: result } : result;
  }
  return found;
}

/** What an aggregate has of which nothing but `__typename` is selected. */
const NO_RESULTS = { countDistinct: {}, sum: {}, avg: {}, min: {}, max: {} };
