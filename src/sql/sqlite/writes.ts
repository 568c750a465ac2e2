import { APPEND_WRITES } from '../sqlite-inbox/append.ts';
import { ADD_ZONES, COUNT_TAIL } from '../sqlite-inbox/delivery-zones.ts';
import { inboxPrograms } from '../sqlite-inbox/pruner.ts';
import { JOB_WRITES } from '../sqlite-inbox/settle.ts';
import type { WriteRegistry } from '../sqlite-writer/batch.ts';
import { CHANGE_RELAY_QUERIES } from '../stores/producers.ts';
import { SHARED_QUERIES } from '../stores/queries.ts';
import { EVENT_WRITES } from './event-log.ts';

/** The statements that create users. */
const USER_WRITES = {
  createUser: 'INSERT INTO users (name, email, version) VALUES (?, ?, ?)',
  // Skips a user whose email is already taken.
  importUser: 'INSERT INTO users (name, email, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
} as const;

/** What the writing connection of a database can run. */
export const SQLITE_WRITES: WriteRegistry = {
  statements: { ...USER_WRITES, ...APPEND_WRITES, ...JOB_WRITES },
  rare: {
    ...EVENT_WRITES,
    ...Object.fromEntries(
      [...SHARED_QUERIES, ...Object.values(CHANGE_RELAY_QUERIES)].map(({ name, sqlite }) => [name, sqlite]),
    ),
    countTail: COUNT_TAIL,
    addZones: ADD_ZONES,
  },
  programs: inboxPrograms,
  // One row of each kind that the doors store, on the pages where their next rows would go.
  checks: [
    `INSERT INTO users (name, email) VALUES ('', '')`,
    `INSERT INTO deliveries (id, source, data_pointer, body, received_at, dedup_key)
     VALUES ('', '', '', x'', 0, lower(hex(randomblob(16))))`,
    `INSERT INTO jobs (delivery, due_at, target)
     VALUES (last_insert_rowid(), 0, coalesce((SELECT target FROM jobs ORDER BY seq DESC LIMIT 1), ''))`,
  ],
};
