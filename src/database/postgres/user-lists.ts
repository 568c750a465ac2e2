import { StoreUnavailableError } from '../../core/store-errors.ts';
import type { SearchLevel } from '../../users/search-level.ts';
import type { TextField, UserLists } from '../../users/user-list.ts';
import type { ListDialect } from '../user-list/dialect.ts';
import { userLists } from '../user-list/list-reader.ts';
import { packRows } from '../user-list/page-rows.ts';
import type { UserReads } from './user-reads.ts';

/** Users that are counted in one statement. */
const SLICE = 200_000;

/** What names the state of all users: the number of changes and the moment of the last one. */
export const USERS_STATE = `(SELECT sum(n) || '.' || max(changed_at) FROM user_changes)`;

const CURSOR_KEY = { name: 'cursor-key', text: `SELECT bytes FROM secrets WHERE name = 'cursor'` };

/** Lower case without a locale folds A to Z and nothing else, and the order is that of the bytes. */
const foldedKey = (field: TextField) => `lower(${field} COLLATE "C")`;

const containing = (fields: readonly TextField[], text: string, bind: (value: string) => string) => {
  const pattern = bind(`%${text.replace(/[\\%_]/g, '\\$&')}%`);
  return `(${fields.map((field) => `${foldedKey(field)} LIKE ${pattern}`).join(' OR ')})`;
};

/** The words of PostgreSQL. */
export const postgresLists: ListDialect = {
  placeholder(nth, value) {
    const sample = Array.isArray(value) ? value[0] : value;
    return `$${nth}::${typeof sample === 'number' ? 'bigint' : 'text'}${Array.isArray(value) ? '[]' : ''}`;
  },
  key: (field) => (field === 'id' ? 'id' : foldedKey(field)),
  isOneOf: (key, values, bind) => `${key} = ANY (${bind(values)})`,
  contains: containing,
  containing,
  state: USERS_STATE,
  json: (fields) =>
    `'{' || ${fields
      .map((field) => `'"${field}":' || ${field === 'id' ? 'id' : `to_json(${field})::text`}`)
      .join(` || ',' || `)} || '}'`,
};

/** The lists of the users in a PostgreSQL database. */
export function postgresUserLists(reads: UserReads, search: SearchLevel): UserLists {
  return userLists({
    dialect: postgresLists,
    search,
    slice: SLICE,
    rows: ({ text, values, isLong }) => reads.run({ text }, values, isLong),
    page: async ({ text, values, isLong }, { limit, backwards }) =>
      packRows(await reads.run({ text }, values, isLong), limit, backwards),
    async cursorKey() {
      const [row] = await reads.run(CURSOR_KEY, []);
      const key = row?.[0];
      if (!(key instanceof Uint8Array))
        throw new StoreUnavailableError('The database has no key for cursors');
      return key;
    },
  });
}
