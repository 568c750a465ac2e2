import type { DatabaseSync } from 'node:sqlite';
import type { RelayPlace, RelayStore } from '../../inbox/inbox.ts';
import { readRow } from '../sqlite/connection.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import type { AppendSteps } from './append.ts';

/** The statements that move the relay's place. */
export const RELAY_WRITES = {
  beginRelay: `
    INSERT INTO user_relay (id, position, at, moved_at) VALUES (1, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET moved_at = excluded.moved_at`,
  // If the place has moved, the subquery gives NULL, which the column rejects; the whole write then fails.
  moveRelay: `
    INSERT INTO user_relay (id, position, at, moved_at)
    VALUES (1, (SELECT ?3 FROM user_relay WHERE position = ?1 AND at = ?2), ?4, ?5)
    ON CONFLICT (id) DO UPDATE SET position = excluded.position, at = excluded.at, moved_at = excluded.moved_at`,
  endRelay: 'DELETE FROM user_relay',
} as const;

/** The place of the relay of users' events, in SQLite. */
export function sqliteRelay(reads: DatabaseSync, writes: WriteQueue, appendSteps: AppendSteps): RelayStore {
  const place = reads.prepare('SELECT position, at FROM user_relay');
  return {
    async begin(start) {
      await writes.write('beginRelay', start.position, start.at, Date.now());
      return readRow<RelayPlace>(place) ?? start;
    },
    async move(from, to, deliveries) {
      const values = [from.position, from.at, to.position, to.at, Date.now()];
      const appends = deliveries.flatMap((delivery) => appendSteps(delivery));
      try {
        await writes.submit([{ statement: 'moveRelay', values }, ...appends]);
        return true;
      } catch (error) {
        if (String(error).includes('NOT NULL constraint failed: user_relay.position')) return false;
        throw error;
      }
    },
    async end() {
      await writes.write('endRelay');
    },
  };
}
