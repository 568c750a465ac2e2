import { hash } from 'node:crypto';
import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import type { AccessPolicy } from '../access/policy.ts';
import { StatementTimeError } from '../core/errors.ts';
import { GenerationalCache } from '../core/generational-cache.ts';
import { preferences } from '../core/negotiation.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import type { Value } from '../relations/relation.ts';
import type { Relations } from '../relations/rows/conditions.ts';
import {
  RowCursors,
  type RowKeys,
  type RowPosition,
  type SortReader,
  sortReader,
} from '../relations/rows/cursors.ts';
import {
  CountLimitError,
  type RowListParameters,
  type RowLists,
  type RowPage,
  readRowList,
  UnindexedListError,
} from '../relations/rows/row-lists.ts';
import type { RowStore } from '../relations/rows/rows.ts';
import type { RowRules, RowView } from '../relations/rules/views.ts';
import {
  AggregateLimitError,
  aggregateJson,
  aggregateProblem,
  readAggregation,
} from '../relations/selections/aggregates.ts';
import { SelectionLimitError } from '../relations/selections/limits.ts';
import { EMBED } from '../relations/selections/read-selection.ts';
import { limitProblem } from '../relations/selections/selection.ts';
import { totalHeaders } from './lists.ts';
import { json, notModified } from './messages.ts';
import { authorizeSelection } from './relations/shown-rows.ts';

/** What lists of relations need of the service. */
export interface RelationListOptions {
  /** The prefix of the paths that clients see. */
  readonly prefix: string;
  /** All relations, by name. */
  readonly relations: Relations;
  /** Asked for the scopes of embedded rows; undefined if the door is open. */
  readonly policy: AccessPolicy | undefined;
  /** Which rows callers may read; undefined without rules. */
  readonly rules: RowRules | undefined;
  /** What stands around the array of rows in the body of a page. */
  readonly frame?: readonly [before: string, behind: string];
  /** The lists that requests asked for lately, by relation and query; bounded in bytes. */
  readonly lists: GenerationalCache<AskedList>;
  readonly cursors: RowCursors;
  /** The key of the database that signs cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
}

/** A list as a query asks for it. */
interface AskedList {
  readonly asked: RowListParameters;
  /** What tells the list from others; its pages may differ in columns and length. */
  readonly name: string;
  /** The address of its first page, and how that of the others begins. */
  readonly first: string;
  readonly others: string;
  readonly readers: readonly SortReader[];
}

/** Maximum length of a cursor, with which the address of a page still fits the head of a request. */
const MAX_CURSOR = 8 * 1024;
/** Size of an asked list in bytes, at most, for each character of its query. */
const BYTES_PER_CHARACTER = 64;
const BYTES_PER_LIST = 4_096;

/** The caches that all lists of a door share. */
export function listCaches(): Pick<RelationListOptions, 'lists' | 'cursors'> {
  return { lists: new GenerationalCache(4 * 1024 * 1024), cursors: new RowCursors() };
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
  readonly #options: RelationListOptions;
  readonly #path: string;

  constructor(store: RowStore, options: RelationListOptions) {
    this.#store = store;
    this.#options = options;
    this.#path = `${options.prefix}/${store.relation.name}`;
  }

  /** GET /books */
  answer(ctx: RequestContext): MaybePromise<Reply> {
    if (ctx.query.aggregate !== undefined || ctx.query.group !== undefined) return this.#aggregates(ctx);
    const prefers = ctx.headers.prefer === undefined ? undefined : preferences(ctx);
    const isLenient = prefers?.get('handling') === 'lenient';
    const view = this.#options.rules?.viewOf(ctx.caller);
    const { lists } = this.#store.as(view);
    const [list, cursor] = this.#listOf(ctx, isLenient, view);
    authorizeSelection(this.#options, ctx, list.asked.selection);
    const { cursorKey, cursors } = this.#options;
    return whenReady(cursorKey(), (key) => {
      const at = cursor === undefined ? undefined : cursors.read(key, list.name, cursor);
      return whenReady(this.#page(lists, list, at), (page) => {
        const link = this.#links(key, list, at, page);
        if (prefers?.get('count') !== 'exact')
          return digestedReply(ctx, this.#body(page), link, undefined, page.large?.digest);
        const counted = explained(() => lists.count(list.asked.where));
        return whenReady(counted, (total) =>
          digestedReply(ctx, this.#body(page), link, total, page.large?.digest),
        );
      });
    });
  }

  #body(page: RowPage): string | Buffer {
    const [before, behind] = this.#options.frame ?? ['', ''];
    if (page.large === undefined) return `${before}[${page.json}]${behind}`;
    return Buffer.concat([Buffer.from(`${before}[`), page.large.bytes, Buffer.from(`]${behind}`)]);
  }

  /** GET /books?aggregate=count,sum(price)&group=author_id */
  async #aggregates(ctx: RequestContext): Promise<Reply> {
    const { relations, frame: [before, behind] = ['', ''] } = this.#options;
    const view = this.#options.rules?.viewOf(ctx.caller);
    const { relation, aggregates } = this.#store.as(view);
    const asked = readAggregation(relations, relation, ctx.query, view);
    const rows = await explained(() => aggregates.read(asked));
    return digestedReply(ctx, before + aggregateJson(asked, rows) + behind);
  }

  /** The list that a request asks for, and the cursor of the page. Throws HttpProblem. */
  #listOf(
    ctx: RequestContext,
    isLenient: boolean,
    view: RowView | undefined,
  ): readonly [AskedList, string | undefined] {
    const { lists, relations } = this.#options;
    const { relation } = this.#store;
    const [query, cursor] = withoutCursor(ctx.target);
    const kept = `${relation.name}?${query}${view === undefined ? '' : ` ${view.key}`}`;
    const known = isLenient ? undefined : lists.get(kept);
    if (known !== undefined) return [known, cursor];
    const asked = readRowList(relations, relation, ctx.query, isLenient, view);
    const parameters = new URLSearchParams(asked.given as [string, string][]).toString();
    const first = parameters === '' ? this.#path : `${this.#path}?${parameters}`;
    const list: AskedList = {
      asked,
      name: JSON.stringify([relation.name, ...asked.given.filter(([name]) => !isOfPage(name))]),
      first,
      others: `${first}${parameters === '' ? '?' : '&'}cursor=`,
      readers: asked.order.map(sortReader),
    };
    // Another query could hide a second cursor, which is refused.
    if (!isLenient && asked.cursor === cursor)
      lists.set(kept, list, BYTES_PER_LIST + BYTES_PER_CHARACTER * kept.length);
    return [list, asked.cursor];
  }

  #page(lists: RowLists, { asked, readers }: AskedList, at: RowPosition | undefined): MaybePromise<RowPage> {
    const next = at && readers.map(({ value }, i) => value(at.next[i] ?? null));
    return explained(() =>
      lists.page({ shape: asked, limit: asked.limit, next, backwards: at?.backwards ?? false }),
    );
  }

  /** Links to the next, previous and first page (RFC 8288); empty if the list is one page. */
  #links(
    key: Uint8Array,
    { name, first: start, others, readers }: AskedList,
    at: RowPosition | undefined,
    { first, last, more }: RowPage,
  ): string {
    const backwards = at?.backwards ?? false;
    const hasNext = last !== undefined && (backwards || more);
    const hasPrev = first !== undefined && at !== undefined && (!backwards || more);
    let links = '';
    if (hasNext || hasPrev) {
      const texts = (values: readonly Value[] = []): RowKeys =>
        readers.map(({ text }, i) => text(values[i] ?? null));
      const { next, prev } = this.#options.cursors.write(key, name, texts(first), texts(last));
      if (next.length > MAX_CURSOR || prev.length > MAX_CURSOR) {
        const message = `A page ends at a row with a longer text than a cursor can have (URL); sort by columns with shorter texts`;
        throw new HttpProblem(400, 'LIMIT_EXCEEDED', message, {
          reasons: [{ detail: message, parameter: 'sort' }],
        });
      }
      if (hasNext) links = `<${others}${next}>; rel="next"`;
      if (hasPrev) links += `${links === '' ? '' : ', '}<${others}${prev}>; rel="prev"`;
    }
    return at === undefined ? links : `${links}${links === '' ? '' : ', '}<${start}>; rel="first"`;
  }
}

/** Whether a parameter says what pages show, and not of which list they are. */
function isOfPage(name: string): boolean {
  return name === 'limit' || name === 'fields' || name.startsWith(EMBED);
}

/** The query of a target without the cursor at its end, and the cursor. */
function withoutCursor(target: string): readonly [query: string, cursor: string | undefined] {
  const start = target.indexOf('?') + 1;
  if (start === 0) return ['', undefined];
  const at = target.lastIndexOf('cursor=');
  const cursor = target.slice(at + 'cursor='.length);
  const isLast = at === start || (at > start && target[at - 1] === '&');
  if (!isLast || !/^[\w-]*$/.test(cursor)) return [target.slice(start), undefined];
  return [target.slice(start, Math.max(start, at - 1)), cursor];
}

/** A reply with a digest of what it shows as its tag, for a page with its links and the number of rows. */
export function digestedReply(
  ctx: RequestContext,
  body: string | Buffer,
  link = '',
  total?: number,
  digest = hash('sha1', body, 'base64url'),
): Reply {
  const around = `${link.includes('"next"') ? 'n' : ''}${link.includes('"prev"') ? 'p' : ''}${total ?? ''}`;
  const etag = `"${digest}${around === '' ? '' : `.${around}`}"`;
  if (ctx.headers['if-none-match'] !== undefined) {
    const known = notModified(ctx, { etag, changed: 0 });
    if (known !== undefined) return known;
  }
  const headers = link === '' ? { etag, ...NO_CACHE } : { link, etag, ...NO_CACHE };
  return json(body, 200, total === undefined ? headers : { ...headers, ...totalHeaders(total) });
}

const NO_CACHE = { 'cache-control': 'no-cache' } as const;

/** The refusal of a request whose statement took too long. */
export function tooLong(cause: StatementTimeError): HttpProblem {
  const message =
    'The request looks at too many rows, or changes too many, for the time that a statement may take (statement); narrow it, or split it';
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message, { cause });
}

/** Turns the errors of lists into refusals that say what to do. */
export function explained<T>(read: () => MaybePromise<T>): MaybePromise<T> {
  const refuse = (error: unknown): never => {
    if (error instanceof SelectionLimitError) throw limitProblem(error);
    if (error instanceof AggregateLimitError) throw aggregateProblem(error);
    if (error instanceof StatementTimeError) throw tooLong(error);
    if (error instanceof CountLimitError) {
      const rows = error.limit.toLocaleString('en-US');
      const message = `count=exact looks at ${rows} rows of ${error.relation} at most (scan); add a narrower filter that an index serves`;
      throw new HttpProblem(400, 'LIMIT_EXCEEDED', message);
    }
    if (!(error instanceof UnindexedListError)) throw error;
    const { relation, remedy = 'Add a narrower filter' } = error;
    throw new HttpProblem(
      400,
      'SEARCH_OFF',
      `More than 10,000 rows of ${relation} would have to be looked at. ${remedy}`,
    );
  };
  try {
    const found = read();
    return found instanceof Promise ? found.catch(refuse) : found;
  } catch (error) {
    return refuse(error);
  }
}
