import { createHash } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { MoveEnd } from './move-end.ts';
import type { MovedRow, MovedTable } from './tables.ts';

/** The number of rows of a table, and the SHA-256 of their values in the order of their keys. */
export interface Checksum {
  readonly rows: number;
  readonly sha256: string;
}

/** Reads a whole table; rejects when the signal aborts. `onRows` is called with the number of rows of each batch. */
export async function checksumOf(
  end: MoveEnd,
  table: MovedTable,
  signal: AbortSignal,
  onRows: (rows: number) => void,
): Promise<Checksum> {
  const hash = createHash('sha256');
  let rows = 0;
  for (let after = 0; ; ) {
    // Signals are handled between two batches, even while a file is read synchronously.
    await nextTick();
    signal.throwIfAborted();
    const batch = await end.read(table, after);
    const last = batch.at(-1);
    if (last === undefined) return { rows, sha256: hash.digest('hex') };
    for (const row of batch) {
      hash.update(lineOf(row));
      for (const value of row) if (value instanceof Uint8Array) hash.update(value);
    }
    after = Number(last[0]);
    rows += batch.length;
    onRows(batch.length);
  }
}

/** The values as JSON, blobs by their length; together with the blobs it is unique per row. */
function lineOf(row: MovedRow): string {
  return `${JSON.stringify(row.map((value) => (value instanceof Uint8Array ? [value.byteLength] : value)))}\n`;
}
