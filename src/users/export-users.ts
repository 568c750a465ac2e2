import { setImmediate as nextTick } from 'node:timers/promises';
import type { DatabaseUserStore } from './database-user-store.ts';

/** What users can be written in, a line each: a JSON object, or CSV with CRLF whose texts are all quoted. */
export type ExportFormat = 'ndjson' | 'csv';

/** Consecutive users as lines of a format. */
export interface UserRows {
  readonly text: string;
  readonly count: number;
  /** The id of the last one. */
  readonly lastId: number;
}

/** Which users are written. */
export interface ExportRange {
  readonly after: number;
  readonly upTo: number;
}

/** Users per piece: about sixty kilobytes, made in a millisecond. */
const PAGE = 1_000;

/** The line in front of the users. */
export function exportHead(format: ExportFormat): string {
  return format === 'csv' ? 'id,name,email\r\n' : '';
}

/** Reads the users of a range in the order of their ids, the next piece when the last one was taken. */
export async function* exportUsers(
  users: DatabaseUserStore,
  format: ExportFormat,
  { after, upTo }: ExportRange,
): AsyncGenerator<UserRows> {
  for (let last = after; last < upTo; ) {
    const rows = await users.rows(format, last, upTo, PAGE);
    if (rows.count === 0) return;
    yield rows;
    last = rows.lastId;
    // Other requests run in between.
    await nextTick();
  }
}
