import type { FieldPlan, FollowEvents, ResolveSelection } from '@portico/graphql-plans';
import { type GraphQLObjectType, type GraphQLResolveInfo, getNamedType } from 'graphql';
import type { MaybePromise } from '../../core/scheduler.ts';
import { codecOf } from '../../relations/codecs.ts';
import type {
  ChangeType,
  EventFollower,
  EventPosition,
  RelationEvent,
  RelationFeed,
} from '../../relations/events.ts';
import type { Column, Relation, Value } from '../../relations/relation.ts';
import { isMet, isMetBy, isOfRowAlone } from '../../relations/rows/changes.ts';
import { type Condition, ConditionReader, invalidParameter } from '../../relations/rows/conditions.ts';
import { RowFormat } from '../../relations/rows/rows.ts';
import { type SeenEvent, seenEvents } from '../../relations/rules/seen-events.ts';
import type { RowView } from '../../relations/rules/views.ts';
import type { RowsFor } from '../callers/caller-rows.ts';
import { resultOf } from './reads.ts';
import { refusal, showing } from './refusals.ts';
import { type KnownRow, RowRenderer } from './rendered-rows.ts';
import { type SelectionReader, withNumbers } from './selections.ts';
import { typeNameOf } from './types.ts';

/** What subscriptions need of the service. */
export interface FollowOptions {
  readonly selections: SelectionReader;
  readonly rowsFor: RowsFor;
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
    return (field, given, request) =>
      showing(async () => {
        const { where, after } = given as FollowInput;
        const { feed, rowsFor } = this.#options;
        if (feed === undefined) throw new Error('No relation records its changes');
        const caller = rowsFor(request);
        const condition = this.#conditionOf(relation, where, caller.view);
        for (const rows of rowFields(field, relation))
          this.#options.selections.check(rows, relation, caller.view);
        const follower = await feed.follow(after == null ? undefined : readPosition(after));
        const isOf = (event: RelationEvent) => type === undefined || event.type === type;
        return eachOf(follower, (all) => {
          const events = all.filter((event) => event.relation === relation.name);
          const { view } = caller;
          if (view !== undefined)
            return wantedOf(seenEvents(view, caller.of(relation), events), isOf, condition);
          return events.filter(
            (event) => isOf(event) && (condition === undefined || isMet(event, condition)),
          );
        });
      });
  }

  /** The row of an event, the root value of a result; null if it has left what the caller may read. */
  row(relation: Relation): ResolveSelection {
    return (field, _given, request, { rootValue, variableValues }) =>
      showing(async () => {
        const { selections, rowsFor } = this.#options;
        const caller = rowsFor(request);
        const selected = selections.read(field, relation, variableValues, { rows: 1 }, caller.view);
        const row = rowOf(relation, rootValue as RelationEvent);
        if (row === undefined) return null;
        const [json = 'null'] = await new RowRenderer(caller).render([row], selected.shape.selection);
        return resultOf(json, selected, 1);
      });
  }

  /** The key of the row of an event, which the caller could read before. */
  key(relation: Relation): ResolveSelection {
    return (_field, _given, _request, { rootValue }) => keyOfEvent(relation, rootValue as RelationEvent);
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
        key: () => keyOfEvent(relation, event),
        row: (_given: unknown, _context: unknown, at: GraphQLResolveInfo) => {
          const plan = plans.get(String(at.path.key));
          if (plan === undefined) throw new Error('The row of a change is not planned');
          return row(plan, given, request, at);
        },
      };
    };
  }

  /** The condition on the row of an event. Throws HttpProblem. */
  #conditionOf(relation: Relation, where: unknown, view: RowView | undefined): Condition | undefined {
    if (where == null) return undefined;
    const condition = new ConditionReader(this.#options.selections.relations, 'where', view).readTree(
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

/** The fields with rows of the field of a subscription: itself, or those of a change; none for a key. */
function rowFields(field: FieldPlan, relation: Relation): readonly FieldPlan[] {
  const type = getNamedType(field.definition.type) as GraphQLObjectType;
  const name = typeNameOf(relation);
  if (type.name === name) return [field];
  return field.select(type).fields.filter(({ definition }) => getNamedType(definition.type).name === name);
}

/** The events that a caller may see and wants. */
async function wantedOf(
  all: Promise<readonly SeenEvent[]>,
  isOf: (event: RelationEvent) => boolean,
  condition: Condition | undefined,
): Promise<readonly RelationEvent[]> {
  const wanted = (await all).filter(
    ({ event, row }) => isOf(event) && (condition === undefined || isMetBy(row, condition)),
  );
  return wanted.map(({ event }) => event);
}

/** The chosen events, one after the other. Returning it returns the follower at once. */
function eachOf(
  follower: EventFollower<RelationEvent>,
  choose: (events: readonly RelationEvent[]) => MaybePromise<readonly RelationEvent[]>,
): AsyncIterableIterator<RelationEvent> {
  const waiting: RelationEvent[] = [];
  const iterator: AsyncIterableIterator<RelationEvent> = {
    async next() {
      for (;;) {
        const event = waiting.shift();
        if (event !== undefined) return { value: event, done: false };
        const { value, done } = await showing(() => follower.next());
        if (done === true) return { value: undefined, done };
        waiting.push(...(await showing(() => choose(value))));
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

/** The row of an event; undefined if it has its key alone. A column that came later has its default. */
function rowOf({ columns }: Relation, { json }: RelationEvent): KnownRow | undefined {
  const { row } = JSON.parse(json) as { readonly row?: Readonly<Record<string, unknown>> };
  return row && { values: columns.map((column) => valueIn(row, column)), version: undefined };
}

/** The columns of the key of an event's row. */
function keyOfEvent(relation: Relation, { key }: RelationEvent): Readonly<Record<string, unknown>> {
  const format = new RowFormat(relation);
  const values = format.readPath(key);
  if (values === undefined) throw new Error(`${key} is no key of ${relation.name}`);
  return JSON.parse(format.keyJson(values)) as Readonly<Record<string, unknown>>;
}

function valueIn(row: Readonly<Record<string, unknown>>, { name, type, default: standard }: Column): Value {
  const given = row[name];
  if (given === undefined) return standard?.kind === 'value' ? standard.value : null;
  if (given === null) return null;
  const parsed = codecOf(type).parse(given);
  return 'value' in parsed ? parsed.value : null;
}
