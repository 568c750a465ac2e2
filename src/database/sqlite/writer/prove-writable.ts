import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

/**
 * Writes a page into the WAL and changes nothing; throws when the file cannot be written to. Nobody is told of this
 * commit, so a new WAL is not synced: the sync of the next commit covers it. A WAL with frames may begin anew, and then
 * SQLite must sync its header before other frames follow.
 */
export function proveWritable(db: DatabaseSync): void {
  const isNew = statSync(`${db.location()}-wal`, { throwIfNoEntry: false })?.size === 0;
  db.exec(`PRAGMA synchronous=${isNew ? 'OFF' : 'NORMAL'}; PRAGMA user_version=0`);
}
