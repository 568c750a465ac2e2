import { setImmediate as turn } from 'node:timers/promises';
import { type Checksum, checksumOf } from './checksum.ts';
import type { MoveEnd, MoveTarget } from './move-end.ts';
import { MoveError } from './move-error.ts';
import { type MovedTable, movedTables } from './tables.ts';

export interface MoveOptions {
  readonly signal: AbortSignal;
  /** Whether to throw away what an unfinished move has copied. */
  readonly restart: boolean;
  /** Told how many rows of how many have been copied, and then how many have been compared. */
  onProgress(step: 'copy' | 'compare', done: number, total: number): void;
}

export interface MoveReport {
  /** Whether it went on where an earlier one had stopped. */
  readonly resumed: boolean;
  /** What both databases hold, by table; undefined when it was interrupted. */
  readonly tables: Readonly<Record<MovedTable['name'], Checksum>> | undefined;
}

/**
 * Copies all rows with their keys, compares what both databases hold, and opens the target for services. Interrupted
 * or failed it can be made again, and goes on behind the last row of the target. Fails with MoveError.
 */
export async function moveDatabase(
  source: MoveEnd,
  target: MoveTarget,
  options: MoveOptions,
): Promise<MoveReport> {
  const place: Place = { where: '' };
  try {
    return await move(source, target, options, place);
  } catch (error) {
    throw isFault(error) ? stopped(error, place) : error;
  }
}

/** Where the move is, for a message. */
interface Place {
  where: string;
}

/** Whether an engine or its connection failed, and not this program. */
function isFault(error: unknown): error is Error {
  return (
    error instanceof Error && 'code' in error && !(error instanceof MoveError || error instanceof TypeError)
  );
}

function stopped(cause: Error, { where }: Place): MoveError {
  return new MoveError(
    `The move stopped${where}: ${cause.message || cause.name}. What was copied stays; mend that, and run it again to go on.`,
    { cause },
  );
}

async function move(
  source: MoveEnd,
  target: MoveTarget,
  { signal, restart, onProgress }: MoveOptions,
  place: Place,
): Promise<MoveReport> {
  const resumed = await prepare(source, target, restart);
  const total = await countAll(source);
  let done = await countAll(target);
  const report = { resumed, tables: undefined };
  for (const table of movedTables) {
    const copied = await copy(source, target, table, signal, (rows, after) => {
      done += rows;
      place.where = ` in ${table.name}, behind ${after}`;
      onProgress('copy', done, total);
    });
    if (!copied) return report;
    await target.setCounter(table, await source.counter(table));
  }
  place.where = ' while both were compared';
  let compared = 0;
  const tables = await compare(source, target, signal, (rows) => {
    compared += rows;
    onProgress('compare', compared, 2 * total);
  });
  if (tables === undefined) return report;
  // One that has come to the source would handle its open deliveries beside those of the target.
  await source.checkAlone();
  await target.finish();
  return { resumed, tables };
}

/** Finds out whether the target may be written to, and marks it; resolves to whether it goes on with an earlier move. */
async function prepare(source: MoveEnd, target: MoveTarget, restart: boolean): Promise<boolean> {
  if (source.origin === target.origin) {
    throw new MoveError('The target is the source itself, or a copy of it. Name an empty database.');
  }
  const { unfinished } = target;
  if (unfinished !== undefined && restart) await target.clear();
  else if (unfinished !== undefined && unfinished !== source.origin) {
    throw new MoveError(
      'The target has a part of another database, by a move that has not ended. Name the source of that move, or begin anew with --restart.',
    );
  } else if (unfinished !== undefined) return true;
  else {
    const rows = await countAll(target);
    if (rows > 0) {
      throw new MoveError(
        `The target is not empty: it has ${rows.toLocaleString('en-US')} rows of users, deliveries and jobs. Name an empty database.`,
      );
    }
  }
  await target.begin(source.origin);
  return false;
}

async function countAll(end: MoveEnd): Promise<number> {
  let rows = 0;
  for (const table of movedTables) rows += await end.count(table);
  return rows;
}

/** Copies what the target does not have yet; resolves to whether it came to the end. */
async function copy(
  source: MoveEnd,
  target: MoveTarget,
  table: MovedTable,
  signal: AbortSignal,
  onRows: (rows: number, after: number) => void,
): Promise<boolean> {
  let after = await target.last(table);
  onRows(0, after);
  let rows = await source.read(table, after);
  while (rows.length > 0) {
    await turn();
    if (signal.aborted) return false;
    after = Number(rows.at(-1)?.[0]);
    // The next rows are read while these are written.
    const written = rows.length;
    [, rows] = await Promise.all([target.write(table, rows), turn().then(() => source.read(table, after))]);
    onRows(written, after);
  }
  return true;
}

/** Reads both databases through, each by itself; undefined when it was interrupted. Fails when they differ. */
async function compare(
  source: MoveEnd,
  target: MoveTarget,
  signal: AbortSignal,
  onRows: (n: number) => void,
) {
  const found: [MovedTable['name'], Checksum][] = [];
  const differences: string[] = [];
  for (const table of movedTables) {
    const [from, to] = await Promise.all(
      [source, target].map((end) => checksumOf(end, table, signal, onRows)),
    );
    if (from === undefined || to === undefined) return undefined;
    found.push([table.name, from]);
    if (from.rows !== to.rows) {
      differences.push(`${table.name}: ${from.rows} rows in the source, ${to.rows} in the target`);
    } else if (from.sha256 !== to.sha256) {
      differences.push(`${table.name}: ${from.rows} rows in both, but not the same ones`);
    } else if ((await target.counter(table)) < (await source.counter(table))) {
      differences.push(`${table.name}: the target would give a key again`);
    }
  }
  if (differences.length > 0) {
    throw new MoveError(
      `The target is not the same as the source (${differences.join('; ')}). One of them was written to, in the middle of the move or between two parts of it. Stop whatever does that, and begin anew with --restart. Until then no service starts on the target.`,
    );
  }
  return Object.fromEntries(found) as Record<MovedTable['name'], Checksum>;
}
