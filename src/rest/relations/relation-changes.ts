import { type Endpoint, HttpProblem, type RequestContext } from '@portico/transport';
import { type Guards, guarded } from '../../access/guarded.ts';
import { type RowAccess, requireAny, viewOf } from '../../access/row-access.ts';
import { prefersEventStream } from '../../core/negotiation.ts';
import { whenReady } from '../../core/scheduler.ts';
import { didYouMean, quote } from '../../core/text.ts';
import type { RelationEvent, RelationFeed } from '../../relations/events.ts';
import { type Relation, USERS } from '../../relations/relation.ts';
import { isMet, isMetBy, isOfRowAlone } from '../../relations/rows/changes.ts';
import { type Condition, invalidParameter, type Relations } from '../../relations/rows/conditions.ts';
import { readRowList } from '../../relations/rows/row-lists.ts';
import type { RowStores } from '../../relations/rows/rows.ts';
import { seenEvents } from '../../relations/rules/seen-events.ts';
import type { RowView } from '../../relations/rules/views.ts';
import { LAST_EVENT_PARAMETER, type OpenStream } from '../change-feed.ts';
import { JSON_TYPE } from '../messages.ts';

interface RelationChangesOptions extends Guards, RowAccess {
  /** The rows of the relations that the door serves. */
  readonly stores: RowStores;
  /** All relations, by name. */
  readonly relations: Relations;
  /** The changes of those that record them; undefined if none does. */
  readonly feed: RelationFeed | undefined;
  /** Answers with the changes of users, which have a log of their own; undefined if they are not followed. */
  readonly ofUsers: Endpoint['handle'] | undefined;
  readonly open: OpenStream;
}

/** The changes of relations as event streams. */
export class RelationChanges {
  /** GET /_changes?relation=books,loans */
  readonly all: Endpoint;
  readonly #options: RelationChangesOptions;

  constructor(options: RelationChangesOptions) {
    this.#options = options;
    this.all = guarded({ bodyLimit: 0, handle: (ctx) => this.#several(ctx) }, options, (policy, ctx) =>
      whenReady(options.rules === undefined ? policy.authenticate(ctx) : policy.identify(ctx), () => {
        const known = namesIn(ctx).filter((name) => options.relations.has(name));
        // A request that names none has to be authorized for all.
        for (const name of known.length > 0 ? known : options.relations.keys()) {
          if (options.rules?.governs(name) !== true) policy.authorizeOperation(ctx, 'read', name);
        }
      }),
    );
  }

  /** The same endpoint, which answers clients that prefer an event stream with the changes of the relation. */
  besides(list: Endpoint['handle'], relation: Relation): Endpoint['handle'] {
    return (ctx) => {
      if (!prefersEventStream(ctx.headers.accept, JSON_TYPE)) return list(ctx);
      const { feed, ofUsers } = this.#options;
      if (relation.name === USERS && ofUsers !== undefined) return ofUsers(ctx);
      if (!relation.changes || feed === undefined) {
        throw new HttpProblem(406, 'NOT_ACCEPTABLE', unrecorded(relation.name, relation));
      }
      const where = this.#conditionOf(relation, ctx, ctx.query);
      return this.#open(ctx, feed, new Map([[relation.name, where]]));
    };
  }

  #several(ctx: RequestContext) {
    const names = namesIn(ctx);
    for (const name of names) this.#requireRecorded(name);
    const { feed, relations } = this.#options;
    if (names.length === 0 || feed === undefined) {
      const recorded = [...relations.values()].filter(({ changes }) => changes).map(({ name }) => name);
      throw invalidParameter('relation', `Name the relations to follow, such as relation=${recorded.join()}`);
    }
    for (const name of names) requireAny(this.#options, ctx, name, ['read']);
    const { relation: _, ...filters } = ctx.query;
    const wanted = new Map(
      names.map((name) => [name, this.#conditionOf(relations.get(name) as Relation, ctx, filters)]),
    );
    return this.#open(ctx, feed, wanted);
  }

  #open(ctx: RequestContext, feed: RelationFeed, wanted: ReadonlyMap<string, Condition>) {
    const view = viewOf(this.#options, ctx);
    const choose = (events: readonly RelationEvent[]) => {
      if (view !== undefined) return this.#seen(view, events, wanted);
      return events.filter((event) => {
        const where = wanted.get(event.relation);
        return where !== undefined && isMet(event, where);
      });
    };
    return this.#options.open(ctx, { feed, choose, followed: 'changes', nameOf: ({ name }) => name });
  }

  /** The events that a caller may see, in their order. */
  async #seen(
    view: RowView,
    events: readonly RelationEvent[],
    wanted: ReadonlyMap<string, Condition>,
  ): Promise<readonly RelationEvent[]> {
    const found: RelationEvent[] = [];
    for (const [name, own] of Map.groupBy(events, ({ relation }) => relation)) {
      const rows = this.#options.stores.get(name);
      const where = wanted.get(name);
      if (rows === undefined || where === undefined) continue;
      const seen = await seenEvents(view, rows, own);
      found.push(...seen.filter(({ row }) => isMetBy(row, where)).map(({ event }) => event));
    }
    return found.toSorted((a, b) => a.position - b.position);
  }

  /** Throws HttpProblem unless a relation is known and records its changes. */
  #requireRecorded(name: string): void {
    const { relations } = this.#options;
    const found = relations.get(name);
    if (found?.changes === true) return;
    const message =
      found === undefined && name !== USERS
        ? `There is no relation ${quote(name)}${didYouMean(name, [...relations.keys()])}`
        : unrecorded(name, found);
    throw invalidParameter('relation', message);
  }

  /** The filters of a stream. Throws HttpProblem for what a stream cannot judge by the row of an event. */
  #conditionOf(relation: Relation, ctx: RequestContext, query: RequestContext['query']): Condition {
    const { [LAST_EVENT_PARAMETER]: _, ...filters } = query;
    for (const name of NOT_FILTERS) {
      if (!(name in filters)) continue;
      throw invalidParameter(
        name,
        `An event stream takes filters and ${LAST_EVENT_PARAMETER}, but not "${name}"`,
      );
    }
    const { where } = readRowList(
      this.#options.relations,
      relation,
      filters,
      false,
      viewOf(this.#options, ctx),
    );
    if (isOfRowAlone(where)) return where;
    const name = Object.keys(filters).find((each) => each.includes('.')) ?? 'where';
    const message = `"${name}" concerns rows of other relations; an event stream takes filters on columns of ${relation.name} only`;
    throw invalidParameter(name, message);
  }
}

function unrecorded(name: string, relation: Relation | undefined): string {
  if (name === USERS) return 'Follow users at /users, with "Accept: text/event-stream"';
  if (relation?.existing !== undefined)
    return `${name} is a table of another program, and nothing records its changes; read its list instead`;
  return `${name} does not record its changes, because its declaration has "changes": false`;
}

const NOT_FILTERS = ['limit', 'cursor', 'sort', 'fields'] as const;

/** The relations that a request names, separated by commas; each once. */
function namesIn({ query }: RequestContext): readonly string[] {
  const given = [query.relation ?? ''].flat().join();
  return given === '' ? [] : [...new Set(given.split(','))];
}
