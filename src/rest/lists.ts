import { NO_PIECES, type Reply, type RequestContext } from '@portico/transport';
import { preferred } from '../core/negotiation.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import {
  countUsers,
  type ExportFormat,
  exportHead,
  type ListParameters,
  readUserPage,
  type UserFormat,
  type UserLists,
  type UserPage,
  type UserPageAround,
  userPages,
} from '../relations/lists.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import {
  data,
  isConditional,
  JSON_TYPE,
  json,
  listValidators,
  notModified,
  type Validators,
  validatorHeaders,
} from './messages.ts';

/** All users in a format. */
interface UserList {
  readonly body: Reply['body'];
  /** The state of all users when the list began, from which validators are made. */
  readonly state: string;
}

const [LIST_HEAD = '', LIST_TAIL = ''] = data('[|]').split('|');

/**
 * Lists all users in id order (CONTRACT.md#rest-routes). A list that fits one page is sent whole. A longer
 * one is sent in pieces, each read after the client has taken the previous one, so memory use does not grow
 * with the number of users. Each piece shows the users as of its read; users created after the start of a
 * long list are not included.
 */
export function userLister(users: DatabaseUserStore, format: UserFormat): () => MaybePromise<UserList> {
  const frame = {
    head: Buffer.from(format === 'json' ? LIST_HEAD : exportHead(format)),
    tail: Buffer.from(format === 'json' ? LIST_TAIL : ''),
    /** In JSON a page begins with a comma, which the first one of a list skips. */
    skipped: format === 'json' ? 1 : 0,
  };
  /**
   * The last list that fitted one page; as long as no user changes, the store returns the same page object.
   */
  let last: { readonly page: UserPage; readonly list: UserList } | undefined;

  async function* pieces(first: UserPage): AsyncGenerator<Buffer> {
    const range = { after: first.lastId, upTo: await users.lastId() };
    yield Buffer.concat([frame.head, first.bytes.subarray(frame.skipped)]);
    for await (const { bytes, more } of userPages(users, format, range)) {
      if (more) yield bytes;
      else return yield Buffer.concat([bytes, frame.tail]);
    }
    yield frame.tail;
  }

  return () =>
    whenReady(users.page(format, 0, Number.MAX_SAFE_INTEGER), (page) => {
      const { bytes, more, state } = page;
      if (more) return { body: pieces(page), state };
      if (page !== last?.page) {
        const body = Buffer.concat([frame.head, bytes.subarray(frame.skipped), frame.tail]);
        last = { page, list: { body, state } };
      }
      return last.list;
    });
}

/** The whole list for a reply to HEAD, without its length, which is unknown before the list is read. */
export function listHead(users: DatabaseUserStore): MaybePromise<UserList> {
  return whenReady(users.state(), (state) => ({ body: NO_PIECES, state }));
}

/** Options of the reply with a page. */
interface ListPageOptions {
  /** The path of the list as clients see it. */
  readonly path: string;
  /** Whether to count all matches. */
  readonly counts: boolean;
}

const [PAGE_HEAD, PAGE_TAIL] = data('[|]')
  .split('|')
  .map((part) => Buffer.from(part)) as [Buffer, Buffer];

/** Answers with the requested page of a list. Throws HttpProblem. */
export function listPage(
  lists: UserLists,
  asked: ListParameters,
  { path, counts }: ListPageOptions,
): MaybePromise<Reply> {
  return whenReady(readUserPage(lists, asked), (page) => {
    const link = linksOf(asked, page, path);
    const headers = {
      ...(link === '' ? {} : { link }),
      ...(page.state === undefined ? {} : validatorHeaders(listValidators(page.state))),
    };
    const body = Buffer.concat([PAGE_HEAD, page.json, PAGE_TAIL]);
    if (!counts) return json(body, 200, headers);
    return whenReady(countUsers(lists, asked), (total) =>
      json(body, 200, { ...headers, ...totalHeaders(total) }),
    );
  });
}

/** The header fields with the number of all matches. */
export function totalHeaders(total: number): Readonly<Record<string, string>> {
  return { 'x-total-count': String(total), 'preference-applied': 'count=exact' };
}

/** Links to the next, previous and first page (RFC 8288). */
function linksOf(
  { given }: Pick<ListParameters, 'given'>,
  { isFirst, next, prev }: Pick<UserPageAround, 'isFirst' | 'next' | 'prev'>,
  path: string,
): string {
  const link = (rel: string, cursor?: string) => {
    const position = cursor === undefined ? [] : [['cursor', cursor] as const];
    const query = new URLSearchParams([...given, ...position] as [string, string][]).toString();
    return `<${path}${query === '' ? '' : `?${query}`}>; rel="${rel}"`;
  };
  return [
    ...(next === undefined ? [] : [link('next', next)]),
    ...(prev === undefined ? [] : [link('prev', prev)]),
    ...(isFirst ? [] : [link('first')]),
  ].join(', ');
}

const FORMATS: Readonly<Record<string, ExportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};
const CHOICES = [JSON_TYPE, ...Object.keys(FORMATS)];
/** The content types of exports. */
export const EXPORT_TYPES: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8',
};

/** The format that the client accepts for the list; undefined for JSON, which `text/*` and `*\/*` get too. */
export function askedExport({ headers }: Pick<RequestContext, 'headers'>): ExportFormat | undefined {
  const { accept } = headers;
  if (accept === undefined || !/ndjson|csv/i.test(accept)) return undefined;
  const type = preferred(accept, CHOICES, ({ name }) => !/^text\/\*$/.test(name));
  return FORMATS[type ?? ''];
}

/** Answers with all users, one per line. */
export function exporter(
  users: DatabaseUserStore,
): (format: ExportFormat, ctx: RequestContext) => MaybePromise<Reply> {
  const lists = { ndjson: userLister(users, 'ndjson'), csv: userLister(users, 'csv') };
  return (format, ctx) => {
    const type = EXPORT_TYPES[format];
    const headersOf = (validators: Validators) => ({ ...validatorHeaders(validators), vary: 'accept' });
    const whole = () =>
      whenReady(lists[format](), ({ body, state }) => ({
        status: 200,
        type,
        body,
        headers: headersOf(exportValidators(format, state)),
      }));
    if (!isConditional(ctx)) return whole();
    return whenReady(users.state(), (state) => {
      const validators = exportValidators(format, state);
      const known = notModified(ctx, validators);
      return known === undefined ? whole() : { ...known, type, headers: headersOf(validators) };
    });
  };
}

/** Validators of an export. The tag includes the format, so that it differs from that of the list as JSON. */
function exportValidators(format: ExportFormat, state: string): Validators {
  const { etag, changed } = listValidators(state);
  return { etag: etag.replace(/"$/, `.${format}"`), changed };
}
