import type { FollowEvents, ResolveSelection } from '@portico/graphql-plans';
import type { GraphQLFieldConfig } from 'graphql';
import type { AccessPolicy } from '../../access/policy.ts';
import type { MaybePromise } from '../../core/scheduler.ts';
import type { ChangeType, RelationFeed } from '../../relations/events.ts';
import { type Operation, type Relation, USERS } from '../../relations/relation.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import { aggregateReader } from '../aggregates/aggregates.ts';
import { type RowSource, rowsFor } from '../callers/caller-rows.ts';
import { type UserResolvers, userResolvers } from '../users/declared-users.ts';
import { Follows } from './follows.ts';
import { Reads } from './reads.ts';
import { SelectionReader } from './selections.ts';
import { mayLeave } from './types.ts';
import { type FieldWrite, Writes } from './writes.ts';

type Resolved = Pick<GraphQLFieldConfig<unknown, unknown>, 'resolve' | 'subscribe' | 'extensions'>;

/** A field of a relation on a root type. */
export type RootField =
  | 'list'
  | 'row'
  | 'connection'
  | 'aggregate'
  | 'create'
  | 'createAll'
  | 'upsert'
  | 'update'
  | 'remove'
  | 'created'
  | 'updated'
  | 'deleted'
  | 'changed';

/** How the fields of relations on the root types are resolved. */
export interface RelationResolvers extends Readonly<Record<RootField, (relation: Relation) => Resolved>> {
  /** Those of users; undefined if their type stays that of the contract. */
  readonly users: UserResolvers | undefined;
}

/** The rows that a door serves. */
export interface ServedRelations extends RowSource {
  readonly relations: Relations;
  /** Whether the users of the door have what the declaration adds to them. */
  readonly extendsUsers: boolean;
  readonly feed: RelationFeed | undefined;
  /** The key of the database that signs cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
  /** Maximum number of values of a result. */
  readonly maxValues: number;
  /** Whether changes need the version of the row. */
  readonly requireIfMatch: boolean;
  /** Who may write which relations; undefined if no credentials are needed. */
  readonly policy?: AccessPolicy | undefined;
  /** Whether all mutations of an operation are one transaction, which is the default, or each is one. */
  readonly mutations?: 'together' | 'single' | undefined;
}

/** What resolves fields that plans resolve from their selection; GraphQL.js and other programs reach it only. */
const resolve = () => {
  throw new Error('This field is resolved from its selection');
};

/** The resolvers of a door; without rows, those of a schema that is only checked. */
export function relationResolvers(
  served: ServedRelations | Pick<ServedRelations, 'extendsUsers'>,
): RelationResolvers {
  if (!('relations' in served)) return { ...CHECKED, users: served.extendsUsers ? CHECKED_USERS : undefined };
  const { feed, cursorKey, requireIfMatch } = served;
  const common = {
    selections: new SelectionReader(served.relations, served.maxValues),
    rowsFor: rowsFor(served),
  };
  const reads = new Reads({ ...common, cursorKey });
  const writes = new Writes({ ...common, requireIfMatch, rules: served.rules, policy: served.policy });
  const follows = new Follows({ ...common, feed });
  const read = (selects: (relation: Relation) => ResolveSelection) => (relation: Relation) => ({
    resolve,
    extensions: { access: relation.name, selects: selects(relation) },
  });
  const isSingle = served.mutations === 'single';
  const how = isSingle ? { selects: writes.single } : { together: writes.together };
  const write =
    (kind: FieldWrite['kind'], ...operations: readonly Operation[]) =>
    (relation: Relation) => ({
      resolve,
      extensions: { access: relation.name, operations, writes: { kind, relation }, ...how },
    });
  const follow =
    (type: ChangeType | undefined, selects: (relation: Relation) => ResolveSelection) =>
    (relation: Relation) => {
      const opened: FollowEvents = follows.events(relation, type);
      return {
        subscribe: resolve,
        resolve,
        extensions: { access: relation.name, follows: opened, selects: selects(relation) },
      };
    };
  const row = (relation: Relation) => follows.row(relation);
  const users = served.extendsUsers ? served.relations.get(USERS) : undefined;
  return {
    list: read((relation) => reads.list(relation)),
    row: read((relation) => reads.row(relation)),
    connection: read((relation) => reads.connection(relation)),
    aggregate: read((relation) => aggregateReader(common, relation)),
    create: write('create', 'create'),
    createAll: write('createAll', 'create'),
    upsert: write('upsert', 'create', 'update'),
    update: write('update', 'update'),
    remove: write('remove', 'delete'),
    created: follow('created', row),
    updated: follow('updated', row),
    deleted: follow('deleted', (relation) =>
      mayLeave(relation) ? follows.key(relation) : follows.row(relation),
    ),
    changed: follow(undefined, (relation) => follows.change(relation)),
    users: users && userResolvers(users, reads, common),
  };
}

const checked = (): Resolved => ({ resolve });
const followed = (): Resolved => ({ resolve, subscribe: resolve });
const CHECKED_USERS: UserResolvers = { list: {}, row: {}, create: {}, followed: {} };
const CHECKED: Omit<RelationResolvers, 'users'> = {
  list: checked,
  row: checked,
  connection: checked,
  aggregate: checked,
  create: checked,
  createAll: checked,
  upsert: checked,
  update: checked,
  remove: checked,
  created: followed,
  updated: followed,
  deleted: followed,
  changed: followed,
};
