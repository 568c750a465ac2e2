import type { FollowEvents, ResolveSelection } from '@portico/graphql-plans';
import { type GraphQLObjectType, type GraphQLResolveInfo, getNamedType } from 'graphql';
import { codecOf } from '../../relations/codecs.ts';
import type {
  ChangeType,
  EventFollower,
  EventPosition,
  RelationEvent,
  RelationFeed,
} from '../../relations/events.ts';
import type { Column, Relation, Value } from '../../relations/relation.ts';
import { isMet, isOfRowAlone } from '../../relations/rows/changes.ts';
import { type Condition, ConditionReader, invalidParameter } from '../../relations/rows/conditions.ts';
import { resultOf } from './reads.ts';
import { refusal, showing } from './refusals.ts';
import type { KnownRow, RowRenderer } from './rendered-rows.ts';
import { type SelectionReader, withNumbers } from './selections.ts';

/** What subscriptions need of the service. */
export interface FollowOptions {
  readonly selections: SelectionReader;
  readonly rows: RowRenderer;
  /** The changes of relations; undefined if none records them. */
  readonly feed: RelationFeed | undefined;
}

interface FollowInput {
  readonly where?: unknown;
  readonly after?: string | null;
}

/** Resolves the fields of subscriptions. */
export class Follows {
  readonly #options: FollowOptions;

  constructor(options: FollowOptions) {
    this.#options = options;
  }

  /** Opens the events of a relation, of one kind or of all. */
  events(relation: Relation, type: ChangeType | undefined): FollowEvents {
    return (_field, given) =>
      showing(async () => {
        const { where, after } = given as FollowInput;
        const { feed } = this.#options;
        if (feed === undefined) throw new Error('No relation records its changes');
        const condition = this.#conditionOf(relation, where);
        const follower = await feed.follow(after == null ? undefined : readPosition(after));
        const wants = (event: RelationEvent) =>
          event.relation === relation.name &&
          (type === undefined || event.type === type) &&
          (condition === undefined || isMet(event, condition));
        return eachOf(follower, wants);
      });
  }

  /** The row of an event, the root value of a result. */
  row(relation: Relation): ResolveSelection {
    return (field, _given, _request, { rootValue, variableValues }) =>
      showing(async () => {
        const selected = this.#options.selections.read(field, relation, variableValues, { rows: 1 });
        const row = rowOf(relation, rootValue as RelationEvent);
        const [json = 'null'] = await this.#options.rows.render([row], selected.shape.selection);
        return resultOf(json, selected, 1);
      });
  }

  /** A change, whose row the executor asks for. */
  change(relation: Relation): ResolveSelection {
    const row = this.row(relation);
    return (field, given, request, info) => {
      const { fields } = field.select(getNamedType(field.definition.type) as GraphQLObjectType);
      const plans = new Map(fields.map((each) => [each.key, each]));
      const event = info.rootValue as RelationEvent;
      return {
        position: textOf(event),
        type: event.type,
        row: (_given: unknown, _context: unknown, at: GraphQLResolveInfo) => {
          const plan = plans.get(String(at.path.key));
          if (plan === undefined) throw new Error('The row of a change is not planned');
          return row(plan, given, request, at);
        },
      };
    };
  }

  /** The condition on the row of an event. Throws HttpProblem. */
  #conditionOf(relation: Relation, where: unknown): Condition | undefined {
    if (where == null) return undefined;
    const condition = new ConditionReader(this.#options.selections.relations, 'where').readTree(
      relation,
      withNumbers(this.#options.selections.relations, relation, where),
    );
    if (isOfRowAlone(condition)) return condition;
    throw invalidParameter(
      'where',
      `"where" of a subscription takes conditions on columns of ${relation.name} only, not on rows of other relations`,
    );
  }
}

/** The wanted events, one after the other. Returning it returns the follower at once. */
function eachOf(
  follower: EventFollower<RelationEvent>,
  wants: (event: RelationEvent) => boolean,
): AsyncIterableIterator<RelationEvent> {
  const waiting: RelationEvent[] = [];
  const iterator: AsyncIterableIterator<RelationEvent> = {
    async next() {
      for (;;) {
        const event = waiting.shift();
        if (event !== undefined) return { value: event, done: false };
        const { value, done } = await showing(() => follower.next());
        if (done === true) return { value: undefined, done };
        waiting.push(...value.filter(wants));
      }
    },
    async return() {
      await follower.return();
      waiting.length = 0;
      return { value: undefined, done: true };
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

function textOf({ position, at }: EventPosition): string {
  return `${position}.${at}`;
}

/** Reads the position of an event. Throws GraphQLError. */
function readPosition(text: string): EventPosition {
  const [, position, at] = /^(\d{1,16})\.(\d{1,16})$/.exec(text) ?? [];
  if (position === undefined) {
    throw refusal('INVALID_EVENT_ID', '"after" takes the position of a change of this relation');
  }
  return { position: Number(position), at: Number(at) };
}

/** The row of an event. A column that came later has its default. */
function rowOf({ columns }: Relation, { json }: RelationEvent): KnownRow {
  const { row } = JSON.parse(json) as { readonly row: Readonly<Record<string, unknown>> };
  return { values: columns.map((column) => valueIn(row, column)), version: undefined };
}

function valueIn(row: Readonly<Record<string, unknown>>, { name, type, default: standard }: Column): Value {
  const given = row[name];
  if (given === undefined) return standard?.kind === 'value' ? standard.value : null;
  if (given === null) return null;
  const parsed = codecOf(type).parse(given);
  return 'value' in parsed ? parsed.value : null;
}
