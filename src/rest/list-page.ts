import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { Reply } from '../http/endpoint.ts';
import type { ListParameters } from '../users/lists/parameters.ts';
import { countUsers, readUserPage, type UserPageAround } from '../users/lists/user-page.ts';
import type { UserLists } from '../users/user-list.ts';
import { data, json } from './envelope.ts';
import { listValidators, validatorHeaders } from './validators.ts';

/** How a page is answered. */
export interface ListPageOptions {
  /** The path of the list as clients see it. */
  readonly path: string;
  /** Whether the number of all matches is asked for. */
  readonly counts: boolean;
}

const [HEAD, TAIL] = data('[|]')
  .split('|')
  .map((part) => Buffer.from(part)) as [Buffer, Buffer];

/** Answers with the page of a list that the parameters ask for. Throws HttpProblem. */
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
    const body = Buffer.concat([HEAD, page.json, TAIL]);
    if (!counts) return json(body, 200, headers);
    return whenReady(countUsers(lists, asked), (total) =>
      json(body, 200, { ...headers, ...totalHeaders(total) }),
    );
  });
}

/** The header fields that tell the number of all matches. */
export function totalHeaders(total: number): Readonly<Record<string, string>> {
  return { 'x-total-count': String(total), 'preference-applied': 'count=exact' };
}

/** The links to the pages around (RFC 8288). */
function linksOf({ given }: ListParameters, { isFirst, next, prev }: UserPageAround, path: string): string {
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
