import type { DatabaseSync } from 'node:sqlite';
import {
  duplicateEmails,
  MAX_DUPLICATES,
  neededIndexes,
  USER_INDEXES,
  type UserIndex,
  type UserIndexOptions,
} from '../list-sql.ts';

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
