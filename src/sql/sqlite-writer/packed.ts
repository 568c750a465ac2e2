import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { BatchResult, WriteResult } from '../batch-queue.ts';
import type { Step, StepRows, Write } from './batch.ts';

/**
 * Writes in the format posted to the writer thread. Structured clone copies a flat list of primitives several
 * times faster than nested objects, and would copy the whole buffer behind each view.
 */
export interface PackedWrites {
  /** Per write, the number of steps; per step, the statement, the number of values, and the values. */
  readonly list: readonly SQLInputValue[];
  /** Pairs of an index in `list` and the length of the blob at that index. */
  readonly blobs: readonly number[];
  /** The bytes of all blobs, concatenated. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether to commit them separately, after all other waiting writes. */
  readonly isBackground?: boolean;
}

/** The results of the batches in one commit, in the format posted back. */
export interface PackedResults {
  /**
   * Per write, the number of steps, or -1 and the error; per step, the number of rows; per row, the number of
   * columns and their values.
   */
  readonly list: readonly SQLOutputValue[];
  /** The number of writes of each batch. */
  readonly lengths: readonly number[];
  readonly fatal?: string;
  readonly isBackground?: boolean;
}

/** Packs writes; the buffer may be transferred. */
export function packWrites(writes: readonly Write[]): PackedWrites {
  const list: SQLInputValue[] = [];
  const blobs: number[] = [];
  const views: Uint8Array[] = [];
  let size = 0;
  for (const steps of writes) {
    list.push(steps.length);
    for (const { statement, values } of steps) {
      list.push(statement, values.length);
      for (const value of values) {
        if (value instanceof Uint8Array) {
          blobs.push(list.length, value.length);
          views.push(value);
          size += value.length;
          list.push(null);
        } else list.push(value);
      }
    }
  }
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const view of views) {
    bytes.set(view, offset);
    offset += view.length;
  }
  return { list, blobs, bytes };
}

/** Reverses `packWrites`; blobs are views of its buffer. */
export function unpackWrites({ list: packed, blobs, bytes }: PackedWrites): readonly Write[] {
  const list = [...packed];
  let offset = 0;
  for (let i = 0; i < blobs.length; i += 2) {
    const end = offset + Number(blobs[i + 1]);
    list[Number(blobs[i])] = bytes.subarray(offset, end);
    offset = end;
  }
  const writes: Write[] = [];
  for (let at = 0; at < list.length; ) {
    const steps: Step[] = [];
    for (let left = Number(list[at++]); left > 0; left--) {
      const statement = String(list[at]);
      const first = at + 2;
      at = first + Number(list[at + 1]);
      steps.push({ statement, values: list.slice(first, at) });
    }
    writes.push(steps);
  }
  return writes;
}

/** Packs the result of a commit; `lengths` has the number of writes of each batch. */
export function packResults(
  { results, ...rest }: BatchResult<StepRows>,
  lengths: readonly number[],
): PackedResults {
  const list: SQLOutputValue[] = [];
  for (const result of results) {
    if ('error' in result) {
      list.push(-1, String(result.error));
      continue;
    }
    list.push(result.rows.length);
    for (const rows of result.rows) {
      list.push(rows.length);
      for (const row of rows) list.push(row.length, ...row);
    }
  }
  return { list, lengths, ...rest };
}

/** The results of each batch. */
export function unpackResults({ list, lengths, ...rest }: PackedResults): readonly BatchResult<StepRows>[] {
  const results: WriteResult<StepRows>[] = [];
  let at = 0;
  const next = () => Number(list[at++]);
  const listOf = <T>(length: number, item: () => T): T[] => {
    const items: T[] = [];
    while (items.length < length) items.push(item());
    return items;
  };
  const row = () => {
    const first = at + 1;
    at = first + next();
    return list.slice(first, at);
  };
  while (at < list.length) {
    const steps = next();
    if (steps < 0) results.push({ error: String(list[at++]) });
    else results.push({ rows: listOf(steps, () => listOf(next(), row)) });
  }
  let end = 0;
  return lengths.map((length, i) => {
    end += length;
    const own = { results: results.slice(end - length, end), ...rest };
    return i === lengths.length - 1 ? own : { ...own, commitContinues: true };
  });
}
