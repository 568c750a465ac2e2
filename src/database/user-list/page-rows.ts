/** The rows of a page as they leave the thread that reads them. */
export interface PackedRows {
  /** The users as JSON objects with commas between, in the order of reading; UTF-8. */
  readonly json: Uint8Array;
  readonly count: number;
  /** Whether there are more rows than the page takes. */
  readonly more: boolean;
  /** Id, name and email of the first and the last user, in the order of reading. */
  readonly first: readonly unknown[] | undefined;
  readonly last: readonly unknown[] | undefined;
  /** What names the state of all users; undefined without users. */
  readonly state: string | undefined;
}

/** Packs the rows of a page: id, name, email, JSON, the state of all. `backwards` puts the last one first. */
export function packRows(
  rows: readonly (readonly unknown[])[],
  limit: number,
  backwards: boolean,
): PackedRows {
  const taken = rows.slice(0, limit);
  if (backwards) taken.reverse();
  const keysOf = (row: readonly unknown[] | undefined) => row?.slice(0, 3);
  const state = taken[0]?.[4];
  return {
    json: Buffer.from(taken.map((row) => String(row[3])).join()),
    count: taken.length,
    more: rows.length > limit,
    first: keysOf(taken[0]),
    last: keysOf(taken.at(-1)),
    state: state === undefined ? undefined : String(state),
  };
}
