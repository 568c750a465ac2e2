import type { FollowEvents, ResolveSelection } from '@portico/graphql-plans';
import type { GraphQLFieldConfig } from 'graphql';
import type { MaybePromise } from '../../core/scheduler.ts';
import type { ChangeType, RelationFeed } from '../../relations/events.ts';
import type { Relation } from '../../relations/relation.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import type { RowStore } from '../../relations/rows/rows.ts';
import { Follows } from './follows.ts';
import { Reads } from './reads.ts';
import { RowRenderer } from './rendered-rows.ts';
import { SelectionReader } from './selections.ts';
import { type FieldWrite, Writes } from './writes.ts';

type Resolved = Pick<GraphQLFieldConfig<unknown, unknown>, 'resolve' | 'subscribe' | 'extensions'>;

/** How the fields of relations on the root types are resolved. */
export type RelationResolvers = Readonly<
  Record<
    | 'list'
    | 'row'
    | 'connection'
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
export interface ServedRelations {
  readonly relations: Relations;
  /** The rows of a relation, also those of users. */
  storeOf(relation: string): RowStore;
  readonly feed: RelationFeed | undefined;
  /** The key of the database that signs cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
  /** Maximum number of values of a result. */
  readonly maxValues: number;
  /** Whether changes need the version of the row. */
  readonly requireIfMatch: boolean;
}

/** What resolves fields that plans resolve from their selection; GraphQL.js and other programs reach it only. */
const resolve = () => {
  throw new Error('This field is resolved from its selection');
};

/** The resolvers of a door; without rows, those of a schema that is only checked. */
export function relationResolvers(served: ServedRelations | undefined): RelationResolvers {
  if (served === undefined) return CHECKED;
  const { relations, storeOf, maxValues } = served;
  const selections = new SelectionReader(relations, maxValues);
  const rows = new RowRenderer(storeOf);
  const reads = new Reads({ ...served, selections });
  const [first] = relations.keys();
  const writes = new Writes({
    selections,
    rows,
    transactions: storeOf(first ?? '').transactions,
    requireIfMatch: served.requireIfMatch,
  });
  const follows = new Follows({ selections, rows, feed: served.feed });
  const read = (selects: (relation: Relation) => ResolveSelection) => (relation: Relation) => ({
    resolve,
    extensions: { access: relation.name, selects: selects(relation) },
  });
  const write = (kind: FieldWrite['kind']) => (relation: Relation) => ({
    resolve,
    extensions: { access: relation.name, writes: { kind, relation }, together: writes.together },
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
    create: write('create'),
    createAll: write('createAll'),
    upsert: write('upsert'),
    update: write('update'),
    remove: write('remove'),
    created: follow('created', row),
    updated: follow('updated', row),
    deleted: follow('deleted', row),
    changed: follow(undefined, (relation) => follows.change(relation)),
  };
}

const checked = (): Resolved => ({ resolve });
const followed = (): Resolved => ({ resolve, subscribe: resolve });
const CHECKED: RelationResolvers = {
  list: checked,
  row: checked,
  connection: checked,
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
