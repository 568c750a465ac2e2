import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/store-errors.ts';
import type { SearchLevel } from '../../users/search-level.ts';
import type { UserLists } from '../../users/user-list.ts';
import type { ListDialect } from '../user-list/dialect.ts';
import { userLists } from '../user-list/list-reader.ts';
import type { BoundStatement } from '../user-list/list-sql.ts';
import { packRows } from '../user-list/page-rows.ts';
import { readRow, readRows } from './read-row.ts';
import type { Reader } from './reader/reader.ts';
import type { TickSnapshot } from './tick-snapshot.ts';

/** A page of more users is read by the reader: if all of them are as large as users can be, so many have 500 KB. */
const LARGE_PAGE = 100;
/** Users that are counted at once: other reads wait meanwhile. */
const SLICE = 10_000;
/** Statements that are kept prepared. */
const MAX_STATEMENTS = 64;

/**
 * What names the state of all users: creates, other changes, and the moment of the last one, so that no state of another
 * file or of a backup has the same name.
 */
export const USERS_STATE = `(SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'users'), 0) || '.' || n || '.' ||
  max(changed_at, coalesce((SELECT version FROM users ORDER BY id DESC LIMIT 1), 0)) FROM user_changes)`;

const CURSOR_KEY = `SELECT bytes FROM secrets WHERE name = 'cursor'`;

/** The words of SQLite. NOCASE folds A to Z and nothing else. */
export const sqliteLists: ListDialect = {
  placeholder: (nth) => `?${nth}`,
  key: (field) => (field === 'id' ? 'id' : `${field} COLLATE NOCASE`),
  isOneOf: (key, values, bind) => `${key} IN (${values.map(bind).join(', ')})`,
  contains: (fields, text, bind) =>
    `(${fields.map((field) => `instr(lower(${field}), ${bind(text)}) > 0`).join(' OR ')})`,
  containing(fields, text, bind, bounds) {
    const phrase = `"${text.replaceAll('"', '""')}"`;
    const query = fields.length === 1 ? `${fields[0]} : ${phrase}` : phrase;
    return `id IN (SELECT rowid AS id FROM users_text WHERE users_text MATCH ${bind(query)}${bounds()})`;
  },
  state: USERS_STATE,
  json: (fields) => `json_object(${fields.map((field) => `'${field}', ${field}`).join(', ')})`,
};

/** What the lists of the users in an SQLite database work with. */
export interface SqliteUserListOptions {
  /** Runs what is quick, on the caller's thread. */
  readonly reads: DatabaseSync;
  readonly snapshot: TickSnapshot | undefined;
  /** Runs what can take long; undefined where the caller's thread has to. */
  readonly reader: Reader | undefined;
  readonly search: SearchLevel;
}

/** The lists of the users in an SQLite database. */
export function sqliteUserLists({ reads, snapshot, reader, search }: SqliteUserListOptions): UserLists {
  const prepared = new Map<string, StatementSync>();
  function statement(text: string): StatementSync {
    const known = prepared.get(text);
    if (known !== undefined) return known;
    if (prepared.size === MAX_STATEMENTS) prepared.clear();
    const made = reads.prepare(text);
    made.setReturnArrays(true);
    prepared.set(text, made);
    return made;
  }
  function here({ text, values }: Pick<BoundStatement, 'text' | 'values'>) {
    snapshot?.enter();
    return readRows<readonly unknown[]>(statement(text), ...(values as readonly (string | number)[]));
  }
  return userLists({
    dialect: sqliteLists,
    search,
    slice: SLICE,
    rows({ isLong, ...asked }) {
      return isLong && reader !== undefined ? reader.rows(asked) : here(asked);
    },
    page({ isLong, ...asked }, { limit, backwards }) {
      const isLarge = isLong || limit > LARGE_PAGE;
      if (isLarge && reader !== undefined) return reader.page(asked, limit, backwards);
      return packRows(here(asked), limit, backwards);
    },
    cursorKey() {
      const row = readRow<readonly [Uint8Array]>(statement(CURSOR_KEY));
      if (row === undefined) throw new StoreUnavailableError('The database has no key for cursors');
      return row[0];
    },
  });
}
