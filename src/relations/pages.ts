import type { DatabaseUserStore } from './user-stores.ts';

/** Formats of exports, with a line per user: a JSON object, or CSV with CRLF and all texts quoted. */
export type ExportFormat = 'ndjson' | 'csv';

/** Formats of users; in `json` a comma precedes each object. */
export type UserFormat = ExportFormat | 'json';

/** Maximum size of a page of users, in bytes; its last user may exceed it. */
export const PAGE_BYTES = 64 * 1024;

/** Consecutive users in a format. */
export interface UserPage {
  /** UTF-8; empty without users. Callers may share a page and must not write to it. */
  readonly bytes: Buffer;
  /** Number of users. */
  readonly count: number;
  /** The id of the last user; the start of the page if it has no users. */
  readonly lastId: number;
  /** Whether there may be more users after it. */
  readonly more: boolean;
  /** The state of all users that the page shows. */
  readonly state: string;
}

/** The line before exported users. */
export function exportHead(format: ExportFormat): string {
  return format === 'csv' ? 'id,name,email\r\n' : '';
}

/** The range of ids to read: `after` < id <= `upTo`. */
interface UserRange {
  readonly after: number;
  readonly upTo: number;
}

/** Reads the pages of a range in id order, each after the previous one was taken. */
export async function* userPages(
  users: Pick<DatabaseUserStore, 'page'>,
  format: UserFormat,
  { after, upTo }: UserRange,
): AsyncGenerator<UserPage, void> {
  for (let last = after; last < upTo; ) {
    const page = await users.page(format, last, upTo);
    if (page.count > 0) yield page;
    if (!page.more) return;
    last = page.lastId;
  }
}

/** Estimates how many users, or events of users, fill a page, from the size of those read last. */
export class PageRows {
  readonly #max: number;
  /** Average size of a user, in bytes. */
  #size = 64;

  /** `max`: maximum number of users per read. */
  constructor(max: number) {
    this.#max = max;
  }

  /** The number of users that fill a page that has `bytes` already. */
  rowsFor(bytes: number): number {
    return Math.min(this.#max, Math.ceil((PAGE_BYTES - bytes) / this.#size));
  }

  /** Records the size of a read. */
  read(bytes: number, rows: number): void {
    if (rows > 0) this.#size = Math.max(1, bytes / rows);
  }
}
