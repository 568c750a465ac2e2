import { randomUUID } from 'node:crypto';
import { type Server, writeFailure } from './pool/server.ts';

/**
 * A commit that stores nothing. It waits for the WAL because it writes a message to it, which a read-only transaction may
 * do; an insert may not, not even one of no rows.
 */
const MESSAGE = `pg_logical_emit_message(true, 'portico', '')`;
export const COMMIT_NOTHING = {
  name: 'commit-nothing',
  text: `INSERT INTO users (name, email) SELECT '', '' WHERE ${MESSAGE} IS NULL`,
};

/**
 * The same, and it writes to the page of the newest row, because a damaged page fails the writes to its table and no
 * others. The lock is the one of a foreign key: it grows no table, and holds up nobody but who removes the row.
 */
const newestOf = (table: string, key: string) =>
  `newest AS (SELECT 1 FROM ${table} ORDER BY ${key} DESC LIMIT 1 FOR KEY SHARE SKIP LOCKED)`;
// No count is below 0, and num_nulls evaluates all that it is given.
export const CHECK_USERS = {
  name: 'check-users',
  text: `
    WITH ${newestOf('users', 'id')}
    INSERT INTO users (name, email) SELECT '', ''
    WHERE num_nulls(${MESSAGE}, (SELECT count(*) FROM newest)) < 0`,
};
const CHECK_DELIVERIES = {
  name: 'check-deliveries',
  text: `
    WITH ${newestOf('deliveries', 'seq')}
    INSERT INTO deliveries (id, source, data_pointer, body, received_at) SELECT '', '', '', ''::bytea, 0
    WHERE num_nulls(${MESSAGE}, (SELECT count(*) FROM newest),
      (SELECT count(*) FROM deliveries WHERE source = '' AND dedup_key = $1),
      (SELECT count(target) FROM (SELECT target FROM jobs ORDER BY seq DESC LIMIT 1) AS job)) < 0`,
};

/** Checks that deliveries can be stored. Fails with StoreUnavailableError. */
export async function checkDeliveries(server: Server): Promise<void> {
  try {
    await server.write(CHECK_DELIVERIES, [randomUUID()]);
  } catch (error) {
    throw writeFailure(error);
  }
}
