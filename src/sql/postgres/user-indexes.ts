import { setTimeout as delay } from 'node:timers/promises';
import {
  duplicateEmails,
  MAX_DUPLICATES,
  neededIndexes,
  USER_INDEXES,
  type UserIndex,
  type UserIndexOptions,
} from '../list-sql.ts';
import type { Connection } from '../postgres-pool/connection.ts';

/** The advisory lock that serialises changes of indexes; an arbitrary number. */
const LOCK = 7_067_842_645;
/** Delay before retrying the lock, in milliseconds. */
const PAUSE = 100;

/** The definition of each index; the id lets it yield users in the order of lists. */
const DEFINITIONS: Readonly<Record<UserIndex, string>> = {
  users_name: 'users (lower(name COLLATE "C"), id)',
  users_email: 'users (lower(email COLLATE "C"), id)',
  users_email_unique: 'users (lower(email COLLATE "C"))',
  users_text: 'users USING gin (lower(name COLLATE "C") gin_trgm_ops, lower(email COLLATE "C") gin_trgm_ops)',
};

/** The existing indexes, and whether each is valid: an interrupted build leaves an invalid one. */
const EXISTING = {
  text: `SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = 'users'::regclass AND relname = ANY ($1::text[])`,
};

/**
 * Creates the indexes that the options need and drops all others, concurrently with writes; only one process
 * at a time does so. Processes poll for the lock, because a concurrent index build would wait for statements
 * that wait for a lock.
 */
export async function indexUsers(connection: Connection, options: UserIndexOptions): Promise<void> {
  const command = (text: string) => connection.run({ text }, undefined);
  const needed = neededIndexes(options);
  const wrong = async () => {
    const rows = await connection.run(EXISTING, [USER_INDEXES]);
    const found = new Map(rows.map(([name, isValid]) => [name, isValid]));
    return USER_INDEXES.filter((name) => found.get(name) !== (needed.has(name) || undefined));
  };
  if ((await wrong()).length === 0) return;
  await command('SET statement_timeout = 0; SET lock_timeout = 0');
  while (!(await connection.run({ text: `SELECT pg_try_advisory_lock(${LOCK})` }, []))[0]?.[0])
    await delay(PAUSE);
  for (const name of await wrong()) {
    await command(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    if (!needed.has(name)) continue;
    if (name === 'users_text') await command('CREATE EXTENSION IF NOT EXISTS pg_trgm');
    if (name === 'users_email_unique') await makeUnique(connection, DEFINITIONS[name]);
    else await command(`CREATE INDEX CONCURRENTLY ${name} ON ${DEFINITIONS[name]}`);
  }
  // An expression index has no statistics yet: the planner would expect few matches of a prefix, and read all
  // of them.
  await command('ANALYZE users');
  await command(`SELECT pg_advisory_unlock(${LOCK})`);
}

const DUPLICATES = {
  text: `SELECT lower(email COLLATE "C"), string_agg(id::text, ', ' ORDER BY id) FROM users
    GROUP BY 1 HAVING count(*) > 1 ORDER BY min(id) LIMIT ${MAX_DUPLICATES + 1}`,
};

/**
 * Creates the unique index of emails; fails with the duplicates if there are any, or if any appear meanwhile.
 */
async function makeUnique(connection: Connection, definition: string): Promise<void> {
  const refuseDuplicates = async () => {
    const rows = await connection.run(DUPLICATES, []);
    if (rows.length > 0) throw duplicateEmails(rows.map(([email, ids]) => [String(email), String(ids)]));
  };
  await refuseDuplicates();
  try {
    await connection.run(
      { text: `CREATE UNIQUE INDEX CONCURRENTLY users_email_unique ON ${definition}` },
      undefined,
    );
  } catch (error) {
    await connection.run({ text: 'DROP INDEX CONCURRENTLY IF EXISTS users_email_unique' }, undefined);
    await refuseDuplicates();
    throw error;
  }
}
