import { setImmediate as nextTick } from 'node:timers/promises';
import { StoreUnavailableError } from '../core/errors.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import {
  defaultOrder,
  type SortKeys,
  type TextField,
  TooManyMatchesError,
  type UserField,
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
  packRows,
  planList,
  sortKeys,
} from './list-sql.ts';
import { type Dialect, POSTGRES, SQLITE, type Sql } from './stores/sql.ts';
import { USER_QUERIES, usersState } from './stores/user-queries.ts';

/** What lists have in common on both engines. */
const sharedBy = (sql: Dialect) => ({
  key: (field: UserField) => (field === 'id' ? 'id' : sql.folded(field)),
  state: usersState(sql),
});

/**
 * Maximum number of characters of a text that the index looks for; what follows them is compared. The index takes time
 * for each part of a text at each place of it in each user: seconds for a character that repeats hundreds of times.
 */
const MAX_PHRASE = 32;

export const sqliteLists: ListDialect = {
  ...sharedBy(SQLITE),
  placeholder: (nth) => `?${nth}`,
  isOneOf: (key, values, bind) => `${key} IN (${values.map(bind).join(', ')})`,
  contains: (fields, text, bind) =>
    `(${fields.map((field) => `instr(lower(${field}), ${bind(text)}) > 0`).join(' OR ')})`,
  containing(fields, text, bind, bounds) {
    const start = Array.from(text).slice(0, MAX_PHRASE).join('');
    const phrase = `"${start.replaceAll('"', '""')}"`;
    const query = fields.length === 1 ? `${fields[0]} : ${phrase}` : phrase;
    const matches = `users_text MATCH ${bind(query)}`;
    const whole = (field: TextField) => `instr(users_text.${field}, ${bind(text)}) > 0`;
    const rest = start.length === text.length ? '' : ` AND (${fields.map(whole).join(' OR ')})`;
    return `id IN (SELECT rowid AS id FROM users_text WHERE ${matches}${rest}${bounds()})`;
  },
  json: (fields) => `json_object(${fields.map((field) => `'${field}', ${field}`).join(', ')})`,
};

const containing = (fields: readonly TextField[], text: string, bind: (value: string) => string) => {
  const pattern = bind(`%${text.replace(/[\\%_]/g, '\\$&')}%`);
  return `(${fields.map((field) => `${POSTGRES.folded(field)} LIKE ${pattern}`).join(' OR ')})`;
};

export const postgresLists: ListDialect = {
  ...sharedBy(POSTGRES),
  placeholder(nth, value) {
    const sample = Array.isArray(value) ? value[0] : value;
    return `$${nth}::${typeof sample === 'number' ? 'bigint' : 'text'}${Array.isArray(value) ? '[]' : ''}`;
  },
  isOneOf: (key, values, bind) => `${key} = ANY (${bind(values)})`,
  contains: containing,
  containing,
  json: (fields) =>
    `'{' || ${fields
      .map((field) => `'"${field}":' || ${field === 'id' ? 'id' : `to_json(${field})::text`}`)
      .join(` || ',' || `)} || '}'`,
};

/** The engine-specific part of lists. */
interface ListEngine {
  readonly dialect: ListDialect;
  readonly search: SearchLevel;
  /** Number of users to count per step. */
  readonly slice: number;
  readonly sql: Pick<Sql, 'read'>;
  /** Reads a page on another thread; undefined if the caller's thread is to read it. */
  page?(statement: BoundStatement, request: UserPageRequest): Promise<PackedRows> | undefined;
}

/** Creates the lists of an engine. */
export function userLists({
  dialect,
  search,
  slice,
  sql: { read: readRows },
  page: readElsewhere,
}: ListEngine): UserLists {
  const sql = new ListSql(dialect);
  let key: Uint8Array | undefined;

  function rows({ text, values, isLong }: BoundStatement) {
    return readRows({ name: '', sqlite: text, postgres: text, isLong }, ...values);
  }

  function readPage(statement: BoundStatement, request: UserPageRequest): MaybePromise<PackedRows> {
    return (
      readElsewhere?.(statement, request) ??
      whenReady(rows(statement), (found) => packRows(found, request.limit, request.backwards))
    );
  }

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
      whenReady(readRows(USER_QUERIES.cursorKey), ([row]) => {
        if (!(row?.[0] instanceof Uint8Array))
          throw new StoreUnavailableError('The database has no key for cursors');
        key = row[0];
        return key;
      }),
  };
}

function countIn([row]: readonly (readonly unknown[])[]): number {
  return Number(row?.[0] ?? 0);
}
