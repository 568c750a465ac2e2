import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/store-errors.ts';
import type { SearchLevel } from '../../users/search-level.ts';
import type { UserLists } from '../../users/user-list.ts';
import type { ListDialect } from '../user-list/dialect.ts';
import { userLists } from '../user-list/list-reader.ts';
import { readRow, readRows } from './read-row.ts';
import type { TickSnapshot } from './tick-snapshot.ts';

/** Users that are counted at once: a few milliseconds, in which no other request runs. */
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

/** The lists of the users in an SQLite database; reads run on the caller's thread. */
export function sqliteUserLists(
  reads: DatabaseSync,
  snapshot: TickSnapshot | undefined,
  search: SearchLevel,
): UserLists {
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
  return userLists({
    dialect: sqliteLists,
    search,
    slice: SLICE,
    rows({ text, values }) {
      snapshot?.enter();
      return readRows<readonly unknown[]>(statement(text), ...(values as readonly (string | number)[]));
    },
    cursorKey() {
      const row = readRow<readonly [Uint8Array]>(statement(CURSOR_KEY));
      if (row === undefined) throw new StoreUnavailableError('The database has no key for cursors');
      return row[0];
    },
  });
}
