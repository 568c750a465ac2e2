import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../core/errors.ts';
import type { UserLists } from '../../relations/lists.ts';
import type { SearchLevel } from '../../relations/user.ts';
import {
  type BoundStatement,
  duplicateEmails,
  type ListDialect,
  MAX_DUPLICATES,
  neededIndexes,
  packRows,
  USER_INDEXES,
  type UserIndex,
  type UserIndexOptions,
} from '../list-sql.ts';
import { userLists } from '../user-lists.ts';
import { readRow, readRows } from './connection.ts';
import type { Reader } from './reader.ts';
import type { TickSnapshot } from './tick-snapshot.ts';

/** Larger pages are read by the reader thread: this many users of maximum size take 500 KB. */
const LARGE_PAGE = 100;
/** Number of users to count per step; other reads wait meanwhile. */
const SLICE = 10_000;
/** Maximum number of prepared statements to cache. */
const MAX_STATEMENTS = 64;

/**
 * Identifies the state of all users: the number of creates, the number of other changes and the time of the
 * last one. The time distinguishes it from states of another file or a backup.
 */
const USERS_STATE = `(SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'users'), 0) || '.' || n || '.' ||
  max(changed_at, coalesce((SELECT version FROM users ORDER BY id DESC LIMIT 1), 0)) FROM user_changes)`;

const CURSOR_KEY = `SELECT bytes FROM secrets WHERE name = 'cursor'`;

/** The SQLite dialect. NOCASE folds only A to Z. */
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

/** The dependencies of lists. */
interface SqliteUserListOptions {
  /** Runs short reads on the caller's thread. */
  readonly reads: DatabaseSync;
  readonly snapshot: TickSnapshot | undefined;
  /** Runs long reads; if undefined, the caller's thread runs them. */
  readonly reader: Reader | undefined;
  readonly search: SearchLevel;
}

/** The lists of users in an SQLite database. */
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

/** The statements that create and drop each index. */
const INDEXES: Readonly<Record<UserIndex, readonly [create: string, drop: string]>> = {
  users_name: ['CREATE INDEX users_name ON users (name COLLATE NOCASE)', 'DROP INDEX users_name'],
  users_email: ['CREATE INDEX users_email ON users (email COLLATE NOCASE)', 'DROP INDEX users_email'],
  users_email_unique: [
    'CREATE UNIQUE INDEX users_email_unique ON users (email COLLATE NOCASE)',
    'DROP INDEX users_email_unique',
  ],
  // An external-content index: only `users` has the texts, and triggers maintain the trigrams.
  users_text: [
    `CREATE VIEW users_folded AS SELECT id, lower(name) AS name, lower(email) AS email FROM users;
     CREATE VIRTUAL TABLE users_text USING fts5(
       name, email, content='users_folded', content_rowid='id', tokenize='trigram case_sensitive 1');
     INSERT INTO users_text(users_text) VALUES ('rebuild');
     CREATE TRIGGER users_text_insert AFTER INSERT ON users BEGIN
       INSERT INTO users_text(rowid, name, email) VALUES (new.id, lower(new.name), lower(new.email));
     END;
     CREATE TRIGGER users_text_delete AFTER DELETE ON users BEGIN
       INSERT INTO users_text(users_text, rowid, name, email)
       VALUES ('delete', old.id, lower(old.name), lower(old.email));
     END;
     CREATE TRIGGER users_text_update AFTER UPDATE OF name, email ON users BEGIN
       INSERT INTO users_text(users_text, rowid, name, email)
       VALUES ('delete', old.id, lower(old.name), lower(old.email));
       INSERT INTO users_text(rowid, name, email) VALUES (new.id, lower(new.name), lower(new.email));
     END`,
    `DROP TRIGGER users_text_insert; DROP TRIGGER users_text_delete; DROP TRIGGER users_text_update;
     DROP TABLE users_text; DROP VIEW users_folded`,
  ],
};

/** Creates the indexes that the options need and drops all others, in one transaction. */
export function indexUsers(db: DatabaseSync, options: UserIndexOptions): void {
  const needed = neededIndexes(options);
  const wrong = () => USER_INDEXES.filter((name) => needed.has(name) !== exists(db, name));
  if (wrong().length === 0) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    if (needed.has('users_email_unique')) refuseDuplicates(db);
    for (const name of wrong()) db.exec(INDEXES[name][needed.has(name) ? 0 : 1]);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function refuseDuplicates(db: DatabaseSync): void {
  const rows = db
    .prepare(
      `SELECT lower(email) AS email, group_concat(id, ', ' ORDER BY id) AS ids FROM users
       GROUP BY email COLLATE NOCASE HAVING count(*) > 1 ORDER BY min(id) LIMIT ${MAX_DUPLICATES + 1}`,
    )
    .all();
  if (rows.length > 0) throw duplicateEmails(rows.map(({ email, ids }) => [String(email), String(ids)]));
}

function exists(db: DatabaseSync, name: UserIndex): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined;
}
