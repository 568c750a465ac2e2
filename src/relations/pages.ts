import type { DatabaseUserStore } from './user-stores.ts';

/** What users are exported as, a line each: a JSON object, or CSV with CRLF whose texts are all quoted. */
export type ExportFormat = 'ndjson' | 'csv';

/** What users are written as; `json` is objects with a comma in front of each. */
export type UserFormat = ExportFormat | 'json';

/** What a page of users holds at most, in bytes, but for the last of its users. */
export const PAGE_BYTES = 64 * 1024;

/** Consecutive users in a format. */
export interface UserPage {
  /** UTF-8; empty without users. A page may be given to several callers, so nobody writes to it. */
  readonly bytes: Buffer;
  /** How many users it holds. */
  readonly count: number;
  /** The id of the last one; where the page began without users. */
  readonly lastId: number;
  /** Whether there may be more users behind it. */
  readonly more: boolean;
  /** What names the state of all users, as the page shows them. */
  readonly state: string;
}

/** The line in front of exported users. */
export function exportHead(format: ExportFormat): string {
  return format === 'csv' ? 'id,name,email\r\n' : '';
}

/** Which users are read: those with `after` < id <= `upTo`. */
interface UserRange {
  readonly after: number;
  readonly upTo: number;
}

/** Reads the pages of a range in the order of ids, the next one when the last one was taken. */
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

/** How many users, or events of them, to read for a page, by the size of those that were read last. */
export class PageRows {
  readonly #max: number;
  /** Bytes of a user. */
  #size = 64;

  /** `max`: users that may be read at once. */
  constructor(max: number) {
    this.#max = max;
  }

  /** The users that fill the rest of a page. */
  rowsFor(bytes: number): number {
    return Math.min(this.#max, Math.ceil((PAGE_BYTES - bytes) / this.#size));
  }

  /** Notes what was read. */
  read(bytes: number, rows: number): void {
    if (rows > 0) this.#size = Math.max(1, bytes / rows);
  }
}
