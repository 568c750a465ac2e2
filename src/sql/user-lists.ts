import { setImmediate as nextTick } from 'node:timers/promises';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import {
  defaultOrder,
  type SortKeys,
  TooManyMatchesError,
  type UserFilter,
  type UserListPage,
  type UserLists,
  type UserPageRequest,
} from '../relations/lists.ts';
import type { SearchLevel } from '../relations/user.ts';
import {
  type BoundStatement,
  type ListDialect,
  ListSql,
  MAX_MATCHES,
  type PackedRows,
  planList,
  sortKeys,
} from './list-sql.ts';

/** The engine-specific part of lists. */
interface ListEngine {
  readonly dialect: ListDialect;
  readonly search: SearchLevel;
  /** Number of users to count per step. */
  readonly slice: number;
  /** Runs a statement; each row is an array of columns. */
  rows(statement: BoundStatement): MaybePromise<readonly (readonly unknown[])[]>;
  /** Runs the statement of a page. */
  page(statement: BoundStatement, request: UserPageRequest): MaybePromise<PackedRows>;
  /** The database's secret for signing cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
}

/** Creates the lists of an engine. */
export function userLists({
  dialect,
  search,
  slice,
  rows,
  page: readPage,
  cursorKey,
}: ListEngine): UserLists {
  const sql = new ListSql(dialect);
  let key: Uint8Array | undefined;

  function read(request: UserPageRequest): MaybePromise<UserListPage> {
    const plan = planList(request, search);
    const keysOf = (row: readonly unknown[] | undefined) => row && sortKeys(row, request.order);
    const page = () =>
      whenReady(readPage(sql.page(plan, request), request), ({ json, first, last, ...others }) => ({
        ...others,
        json: Buffer.from(json.buffer, json.byteOffset, json.byteLength),
        first: keysOf(first),
        last: keysOf(last),
      }));
    // A filter on ids is short and matches one user per id, so it needs no check of the limit.
    if (plan.kind === 'index-scan' || plan.seek?.field === 'id') return page();
    return whenReady(rows(sql.matches(plan)), (found) => {
      if (countIn(found) > MAX_MATCHES) throw new TooManyMatchesError(plan.seek !== undefined);
      return page();
    });
  }

  async function count(filters: readonly UserFilter[]): Promise<number> {
    const plan = planList({ filters, order: defaultOrder(filters) }, search);
    if (plan.kind === 'filter-scan') {
      if (countIn(await rows(sql.matches(plan))) > MAX_MATCHES)
        throw new TooManyMatchesError(plan.seek !== undefined);
      return countIn(await rows(sql.filterScanCount(plan)));
    }
    let counted = 0;
    let next: SortKeys | undefined;
    for (;;) {
      const [last] = await rows(sql.step(plan, next, slice));
      if (last === undefined) return counted + countIn(await rows(sql.rest(plan, next, slice)));
      counted += slice;
      next = sortKeys(last, plan.order);
      await nextTick();
    }
  }

  return {
    search,
    page: read,
    count,
    cursorKey: () =>
      key ??
      whenReady(cursorKey(), (found) => {
        key = found;
        return found;
      }),
  };
}

function countIn([row]: readonly (readonly unknown[])[]): number {
  return Number(row?.[0] ?? 0);
}
