/** The limits of a read with nested rows, named in refusals. */
export const LIMITS = {
  /** Levels of nested rows. */
  levels: 4,
  /** Nested rows of all levels, as far as they are written. */
  embeds: 20,
  /** Rows of all levels behind the first. */
  rows: 50_000,
  /** Rows of an inverse without a limit, for each row of the level above; and the highest limit. */
  perRow: 1_000,
  /** Size of the nested rows as JSON, in bytes. */
  bytes: 16 * 1024 * 1024,
} as const;

/** A read reaches a limit; nothing of it is returned. */
export class SelectionLimitError extends Error {
  override readonly name = 'SelectionLimitError';
  readonly limit: 'rows' | 'perRow' | 'bytes' | 'scan';
  /** The path of the nested rows. */
  readonly path: string;

  constructor(limit: SelectionLimitError['limit'], path: string) {
    super(`The rows of ${path} exceed a limit (${limit})`);
    this.limit = limit;
    this.path = path;
  }
}
