import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { MoveEnd } from './move-end.ts';
import type { MovedRow, MovedTable } from './tables.ts';

/** What a table holds: how many rows, and the SHA-256 of all their values in the order of their keys. */
export interface Checksum {
  readonly rows: number;
  readonly sha256: string;
}

/** Reads a table through; undefined when it was interrupted. `onRows` is told of the rows of each batch. */
export async function checksumOf(
  end: MoveEnd,
  table: MovedTable,
  signal: AbortSignal,
  onRows: (rows: number) => void,
): Promise<Checksum | undefined> {
  const hash = createHash('sha256');
  let rows = 0;
  for (let after = 0; ; ) {
    // Signals are heard between two batches, however fast a file is read.
    await turn();
    if (signal.aborted) return undefined;
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

/** The values as JSON, bytes by their number: no two different rows give the same. */
function lineOf(row: MovedRow): string {
  return `${JSON.stringify(row.map((value) => (value instanceof Uint8Array ? [value.byteLength] : value)))}\n`;
}
