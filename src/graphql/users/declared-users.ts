import { type FieldPlan, type ResolveSelection, TO_RESOLVER } from '@portico/graphql-plans';
import { type GraphQLFieldConfig, type GraphQLObjectType, getNamedType } from 'graphql';
import type { Relation } from '../../relations/relation.ts';
import { readUserId, type User } from '../../relations/user.ts';
import type { ReadOptions, Reads } from '../relations/reads.ts';
import { resultOf } from '../relations/reads.ts';
import { missingRow, refusal, showing } from '../relations/refusals.ts';

type Resolved = Pick<GraphQLFieldConfig<unknown, unknown>, 'resolve' | 'subscribe' | 'extensions'>;

/** How the contract's fields of users are resolved whose type has what a declaration adds. */
export interface UserResolvers {
  readonly list: Resolved;
  readonly row: Resolved;
  readonly create: Resolved;
  readonly followed: Resolved;
}

/**
 * The resolvers of users with the columns that a declaration adds, and with the rows that refer to them. A field that
 * selects no more than the contract has is left to the resolver of the contract.
 */
export function userResolvers(
  users: Relation,
  reads: Reads,
  { selections, rowsFor }: Pick<ReadOptions, 'selections' | 'rowsFor'>,
): UserResolvers {
  const all = reads.all(users);
  const row = reads.row(users);
  return {
    list: planned(all),
    row: planned((field, given, request, info) => {
      const isId = readUserId(String(given.id)) !== undefined;
      return row(field, isId ? given : {}, request, info);
    }),
    create: planned((field, given, request, info) =>
      showing(async () => {
        const caller = rowsFor(request);
        // What the field selects is refused before the user is created.
        const selected = selections.read(field, users, info.variableValues, { rows: 1 }, caller.view);
        const { id } = (await field.resolve(undefined, given, undefined, info)) as User;
        const json = await caller.of(users).lists.read([Number(id)], selected.shape.selection);
        if (json === undefined) throw missingRow(users.name);
        return resultOf(json, selected, 1);
      }),
    ),
    followed: {
      extensions: {
        follows(field: FieldPlan) {
          if (exceedsContract(field)) throw moreThanEvents(field);
          return field.definition.subscribe?.(undefined, {}, undefined, undefined as never);
        },
      },
    },
  };
}

function planned(selects: ResolveSelection): Resolved {
  const either: ResolveSelection = (field, ...rest) =>
    exceedsContract(field) ? selects(field, ...rest) : TO_RESOLVER;
  return { extensions: { selects: either } };
}

/** Whether a field selects of users what a declaration adds to them. */
function exceedsContract(field: FieldPlan): boolean {
  const type = getNamedType(field.definition.type) as GraphQLObjectType;
  return field.select(type).fields.some(({ definition }) => definition.extensions.member !== undefined);
}

function moreThanEvents({ name }: FieldPlan) {
  const message = `"${name}" delivers the id, the name and the email of users; ask for the rest with "user"`;
  return refusal('INVALID_PARAMETER', message);
}
