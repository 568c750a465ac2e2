import { createHash } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { MoveEnd } from './end.ts';
import { type FixedTable, type MovedRow, type MovedTable, MoveError } from './tables.ts';

/** Options of a move. */
interface MoveOptions {
  readonly signal: AbortSignal;
  /** Whether to delete the rows copied by an unfinished move. */
  readonly restart: boolean;
  /** Called with the number of rows copied so far and in total, then with the number of rows compared. */
  onProgress(step: 'copy' | 'compare', done: number, total: number): void;
}

/** The result of a move. */
export interface MoveReport {
  /** Whether it continued an interrupted move. */
  readonly resumed: boolean;
  /** Whether an earlier move was already complete, so that nothing was copied. */
  readonly alreadyComplete: boolean;
  /** The checksum of each table, the same in both databases; undefined if interrupted. */
  readonly tables: Checksums | undefined;
}

/** The checksum of each table; those of relations have the names of their tables. */
type Checksums = Readonly<Record<FixedTable, Checksum> & Record<string, Checksum>>;

/**
 * Copies all rows with their keys, compares both databases, and opens the target for services. After an
 * interruption or a failure it can be run again and continues after the last row of the target. If the target
 * already equals the source, an earlier move was killed just before it reported success. Fails with
 * MoveError.
 */
export async function moveDatabase(
  source: MoveEnd,
  target: MoveEnd,
  { signal, restart, onProgress }: MoveOptions,
): Promise<MoveReport> {
  /** The progress, for error messages. */
  let where = '';
  let resumed = false;
  const comparison = async (total: number) => {
    where = ' during the comparison';
    let compared = 0;
    return compare(source, target, signal, (rows) => {
      compared += rows;
      onProgress('compare', compared, 2 * total);
    });
  };
  try {
    const total = await source.count();
    if (await isFull(source, target)) {
      const { tables, differences } = await comparison(total);
      if (differences.length > 0) throw await notEmpty(target);
      return { resumed, alreadyComplete: true, tables };
    }
    resumed = await prepare(source, target, restart);
    let done = await target.count();
    for (const table of source.tables) {
      await copy(source, target, table, signal, (rows, after) => {
        done += rows;
        where = ` in ${table.name}${after === undefined ? '' : `, after key ${keyText(table, after)}`}`;
        onProgress('copy', done, total);
      });
      await target.setCounter(table, await source.counter(table));
    }
    const { tables, differences } = await comparison(total);
    if (differences.length > 0) throw different(differences);
    // A service on the source would handle the open deliveries a second time.
    await source.checkAlone();
    await target.finish();
    return { resumed, alreadyComplete: false, tables };
  } catch (error) {
    if (signal.aborted && error === signal.reason) {
      return { resumed, alreadyComplete: false, tables: undefined };
    }
    if (!isFault(error)) throw error;
    throw new MoveError(
      `The move stopped${where}: ${error.message || error.name}. The copied rows stay; fix the cause and run it again to continue.`,
      { cause: error },
    );
  }
}

/** Whether an engine or its connection failed; any other error is a bug or a refusal. */
function isFault(error: unknown): error is Error {
  return (
    error instanceof Error && 'code' in error && !(error instanceof MoveError || error instanceof TypeError)
  );
}

/** Checks and marks the target; resolves to whether this continues an interrupted move. */
async function prepare(source: MoveEnd, target: MoveEnd, restart: boolean): Promise<boolean> {
  if (source.origin === target.origin) {
    throw new MoveError('The target is the source itself, or a copy of it. Name an empty database.');
  }
  const { unfinished } = target;
  if (unfinished !== undefined && restart) {
    await target.prepare();
    await target.clear();
  }
  if (unfinished !== undefined && !restart && unfinished !== source.origin) {
    throw new MoveError(
      'The target contains a part of another database, from an unfinished move. Name the source of that move, or start over with --restart.',
    );
  }
  if (unfinished !== undefined && !restart) {
    await target.prepare();
    return true;
  }
  if ((await target.count()) > 0) throw await notEmpty(target);
  await target.begin(source.origin);
  await target.prepare();
  return false;
}

/**
 * Whether the target is not the source itself, has no unfinished move, and has as many rows as the source.
 */
async function isFull(source: MoveEnd, target: MoveEnd): Promise<boolean> {
  if (source.origin === target.origin || target.unfinished !== undefined) return false;
  const rows = await target.count();
  return rows > 0 && rows === (await source.count()) && (await target.isPlanned());
}

async function notEmpty(target: MoveEnd): Promise<MoveError> {
  const rows = (await target.count()).toLocaleString('en-US');
  return new MoveError(
    `The target is not empty: it has ${rows} rows, and they are not those of the source. Name an empty database.`,
  );
}

function different(differences: readonly string[]): MoveError {
  return new MoveError(
    `The target is not the same as the source (${differences.join('; ')}). One of them was written to during the move or between two parts of it. Stop the writer and start over with --restart. Until then no service starts on the target.`,
  );
}

/** Copies the rows that the target lacks; rejects if the signal aborts. */
async function copy(
  source: MoveEnd,
  target: MoveEnd,
  table: MovedTable,
  signal: AbortSignal,
  onRows: (rows: number, after: MovedRow | undefined) => void,
): Promise<void> {
  let after = await target.last(table);
  onRows(0, after);
  let rows = await source.read(table, after);
  while (rows.length > 0) {
    await nextTick();
    signal.throwIfAborted();
    after = rows.at(-1);
    // Reads the next rows while these are written.
    const written = rows.length;
    [, rows] = await Promise.all([
      target.write(table, rows),
      nextTick().then(() => source.read(table, after)),
    ]);
    onRows(written, after);
  }
}

/** Compares the checksums of both databases; resolves to those of the source and to the differences. */
async function compare(source: MoveEnd, target: MoveEnd, signal: AbortSignal, onRows: (n: number) => void) {
  const found: [string, Checksum][] = [];
  const differences: string[] = [];
  for (const table of source.tables) {
    const [from, to] = await Promise.all([
      checksumOf(source, table, signal, onRows),
      checksumOf(target, table, signal, onRows),
    ]);
    found.push([table.name, from]);
    if (from.rows !== to.rows) {
      differences.push(`${table.name}: ${from.rows} rows in the source, ${to.rows} in the target`);
    } else if (from.sha256 !== to.sha256) {
      differences.push(`${table.name}: ${from.rows} rows in both, but with different values`);
    } else if ((await target.counter(table)) < (await source.counter(table))) {
      differences.push(`${table.name}: the target would reuse a key`);
    }
  }
  return { tables: Object.fromEntries(found) as Checksums, differences };
}

/** The number of rows of a table, and the SHA-256 of their values in key order. */
interface Checksum {
  readonly rows: number;
  readonly sha256: string;
}

/**
 * Reads a whole table; rejects if the signal aborts. `onRows` is called with the number of rows of each
 * batch.
 */
async function checksumOf(
  end: MoveEnd,
  table: MovedTable,
  signal: AbortSignal,
  onRows: (rows: number) => void,
): Promise<Checksum> {
  const hash = createHash('sha256');
  let rows = 0;
  for (let after: MovedRow | undefined; ; ) {
    // Lets process signals be handled between batches, even if reads are synchronous.
    await nextTick();
    signal.throwIfAborted();
    const batch = await end.read(table, after);
    const last = batch.at(-1);
    if (last === undefined) return { rows, sha256: hash.digest('hex') };
    for (const row of batch) {
      hash.update(lineOf(row));
      for (const value of row) if (value instanceof Uint8Array) hash.update(value);
    }
    after = last;
    rows += batch.length;
    onRows(batch.length);
  }
}

/** The values as JSON, with blobs replaced by their length; together with the blobs it identifies the row. */
function lineOf(row: MovedRow): string {
  const values = row.map((value) => {
    if (value instanceof Uint8Array) return [value.byteLength];
    return typeof value === 'bigint' ? [String(value)] : value;
  });
  return `${JSON.stringify(values)}\n`;
}

/** The key of a row, for messages. */
function keyText({ key }: MovedTable, row: MovedRow): string {
  return row.slice(0, key.length).map(String).join(',');
}
