import type { FollowEvents, ResolveSelection } from '@portico/graphql-plans';
import type { GraphQLFieldConfig } from 'graphql';
import type { AccessPolicy } from '../../access/policy.ts';
import type { MaybePromise } from '../../core/scheduler.ts';
import type { ChangeType, RelationFeed } from '../../relations/events.ts';
import type { Operation, Relation } from '../../relations/relation.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import { aggregateReader } from '../aggregates/aggregates.ts';
import { type RowSource, rowsFor } from '../callers/caller-rows.ts';
import { Follows } from './follows.ts';
import { Reads } from './reads.ts';
import { SelectionReader } from './selections.ts';
import { mayLeave } from './types.ts';
import { type FieldWrite, Writes } from './writes.ts';

type Resolved = Pick<GraphQLFieldConfig<unknown, unknown>, 'resolve' | 'subscribe' | 'extensions'>;

/** How the fields of relations on the root types are resolved. */
export type RelationResolvers = Readonly<
  Record<
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
    | 'changed',
    (relation: Relation) => Resolved
  >
>;

/** The rows that a door serves. */
export interface ServedRelations extends RowSource {
  readonly relations: Relations;
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
export function relationResolvers(served: ServedRelations | undefined): RelationResolvers {
  if (served === undefined) return CHECKED;
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
  };
}

const checked = (): Resolved => ({ resolve });
const followed = (): Resolved => ({ resolve, subscribe: resolve });
const CHECKED: RelationResolvers = {
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
