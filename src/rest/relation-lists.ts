import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import { preferences } from '../core/negotiation.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { codecOf } from '../relations/codecs.ts';
import { around, readCursor, type SortKeys } from '../relations/lists.ts';
import type { Value } from '../relations/relation.ts';
import type { Relations } from '../relations/rows/conditions.ts';
import { type RowListParameters, readRowList, UnindexedListError } from '../relations/rows/row-lists.ts';
import { RowFormat, type RowStore } from '../relations/rows/rows.ts';
import { linksOf, totalHeaders } from './lists.ts';
import { json } from './messages.ts';

/** What lists of relations need of the service. */
export interface RelationListOptions {
  /** The prefix of the paths that clients see. */
  readonly prefix: string;
  /** All relations, by name. */
  readonly relations: Relations;
  /** The body of a page, given the array of its rows. Default: the array. */
  readonly frame?: (rows: string) => string;
  /** The key of the database that signs cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
}

/** Answers requests for pages of a relation. */
export function listOf(
  store: RowStore,
  options: RelationListOptions,
): (ctx: RequestContext) => MaybePromise<Reply> {
  const list = new RelationList(store, options);
  return (ctx) => list.answer(ctx);
}

class RelationList {
  readonly #store: RowStore;
  readonly #format: RowFormat;
  readonly #options: RelationListOptions;

  constructor(store: RowStore, options: RelationListOptions) {
    this.#store = store;
    this.#format = new RowFormat(store.relation);
    this.#options = options;
  }

  /** GET /books */
  answer(ctx: RequestContext): MaybePromise<Reply> {
    const { relations, cursorKey, prefix, frame } = this.#options;
    const { relation, lists } = this.#store;
    const prefers = preferences(ctx);
    const asked = readRowList(relations, relation, ctx.query, prefers.get('handling') === 'lenient');
    // What a page shows and how long it is may change from page to page.
    const list = JSON.stringify([
      relation.name,
      ...asked.given.filter(([name]) => name !== 'limit' && name !== 'fields'),
    ]);
    return whenReady(cursorKey(), (key) => {
      const at = asked.cursor === undefined ? undefined : readCursor(key, list, asked.cursor);
      const next = at && this.#sortValues(asked, at.next);
      const page = explained(() => lists.page({ ...asked, next, backwards: at?.backwards ?? false }));
      return whenReady(page, (found) => {
        const first = found.first && this.#sortTexts(asked, found.first);
        const last = found.last && this.#sortTexts(asked, found.last);
        const link = linksOf(
          asked,
          around(key, list, at, { ...found, first, last }),
          `${prefix}/${relation.name}`,
        );
        const headers = link === '' ? {} : { link };
        const rows = `[${found.rows.map((values) => this.#format.json(values, asked.fields)).join()}]`;
        const body = frame === undefined ? rows : frame(rows);
        if (prefers.get('count') !== 'exact') return json(body, 200, headers);
        const counted = explained(() => lists.count(asked.where));
        return whenReady(counted, (total) => json(body, 200, { ...headers, ...totalHeaders(total) }));
      });
    });
  }

  /** The values by which a row is sorted, as texts of a cursor. */
  #sortTexts({ order }: RowListParameters, values: readonly Value[]): SortKeys {
    return values.map((value, i) => {
      const type = order[i]?.column.type;
      return value === null || type === undefined ? null : codecOf(type).formatText(value);
    });
  }

  /** The reverse of `#sortTexts`. */
  #sortValues({ order }: RowListParameters, texts: SortKeys): readonly Value[] {
    return order.map(({ column }, i) => {
      const text = texts[i] ?? null;
      const parsed = text === null ? { value: null } : codecOf(column.type).parseText(String(text));
      return 'value' in parsed ? parsed.value : null;
    });
  }
}

/** Turns an UnindexedListError into a refusal that says what to declare. */
export function explained<T>(read: () => MaybePromise<T>): MaybePromise<T> {
  const refuse = (error: unknown): never => {
    if (!(error instanceof UnindexedListError)) throw error;
    const { relation, index } = error;
    const line = `indexes: [[${index.map((column) => `'${column}'`).join(', ')}]]`;
    throw new HttpProblem(
      400,
      'SEARCH_OFF',
      `More than 10,000 rows of ${relation} would have to be looked at. Add to its declaration: ${line}`,
    );
  };
  try {
    const found = read();
    return found instanceof Promise ? found.catch(refuse) : found;
  } catch (error) {
    return refuse(error);
  }
}
