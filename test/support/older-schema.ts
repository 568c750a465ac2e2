import { PACKAGE_ROOT } from '../../src/core/package-root.ts';
import { migrationFiles, readMigration } from '../../src/sql/migration-files.ts';

type Engine = 'sqlite' | 'postgres';

const folderOf = (engine: Engine) => new URL(`src/sql/${engine}/migrations/`, PACKAGE_ROOT);

/** The names of all migrations, which are the same for both engines. */
export const MIGRATIONS: readonly string[] = migrationFiles(folderOf('sqlite'));

/** A time at which everything in the rows has happened. */
export const THEN = 1_700_000_000_000;

const EMPTY = { sqlite: `x'7b7d'`, postgres: `'{}'` };

/** Rows by the migration from which on a process could have stored them. */
function rowsSince(migration: string, engine: Engine): string {
  const body = EMPTY[engine];
  switch (migration.slice(0, 3)) {
    case '001':
      return `INSERT INTO users (name, email) VALUES ('Ann', 'ann@example.org'), ('Bob', 'bob@example.org');`;
    case '002':
      return `
        INSERT INTO deliveries (id, source, event, data_pointer, content_type, body, received_at, dedup_key)
        VALUES ${[1, 2, 3, 4, 5, 6].map((n) => `('018bcfe5-6800-7000-8000-00000000000${n}', '', 'e', '', NULL, ${body}, ${THEN + n}, 'k${n}')`)};
        INSERT INTO jobs (delivery, target, status, attempts, due_at, owner, order_key, error, finished_at) VALUES
          (1, 'handler:e', 'done', 1, ${THEN}, NULL, NULL, NULL, ${THEN + 9}),
          (2, 'handler:e', 'dead', 10, ${THEN}, NULL, NULL, 'broken', ${THEN + 9}),
          (3, 'handler:e', 'open', 0, ${THEN}, NULL, NULL, NULL, NULL),
          (4, 'handler:e', 'open', 1, ${THEN}, 'a process that is gone', NULL, 'at first', NULL),
          (5, 'handler:e', 'open', 0, ${THEN}, NULL, 'key', NULL, NULL),
          (6, 'handler:e', 'open', 0, ${THEN}, NULL, 'key', NULL, NULL);`;
    case '003':
      return `INSERT INTO targets (name, seen_at) VALUES ('handler:e', ${THEN});`;
    // On PostgreSQL claims find out.
    case '007':
      return engine === 'sqlite' ? 'UPDATE jobs SET waits = 1 WHERE seq = 6;' : '';
    case '009':
      return `INSERT INTO attempts (job, attempt, outcome, started_at, duration, process, error)
        VALUES (2, 10, 'dead', ${THEN}, 5, 'host:1:ab', 'broken');`;
    case '010':
      return `INSERT INTO remembered_keys (source, dedup_key, id, received_at) VALUES ('', 'removed', 'r', ${THEN});`;
    case '011':
      return `INSERT INTO marks (name, at) VALUES ('schedule:night', ${THEN});`;
    default:
      return '';
  }
}

/** SQL that makes the schema of an earlier version, with rows that one has stored: after its first `count` migrations. */
export function olderSchema(engine: Engine, count: number): string {
  const files = MIGRATIONS.slice(0, count);
  return [
    'CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)'.replace(
      /BIGINT(.*)$/,
      engine === 'sqlite' ? 'INTEGER$1 STRICT;' : 'BIGINT$1;',
    ),
    ...files.map((name) => `${readMigration(folderOf(engine), name)};`),
    ...files.map((name) => rowsSince(name, engine)),
    ...files.map((name) => `INSERT INTO migrations VALUES ('${name}', 0);`),
  ].join('\n');
}
