import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';

/** Processor time that a statement, or the statements of one write, may take, in milliseconds. */
export const MAX_TIME = 2_000;
/** Calls between two looks at the clock. */
const LOOK = 8;

/**
 * The function that a statement calls at each row that its conditions look at, with a value of the row, so that SQLite
 * does not call it once for all rows.
 */
const FUNCTION = 'portico_timely';
/** What the error of a statement says that took too long. */
const TOO_LONG = 'the statement took too long';

/** The condition that a statement on the rows of `alias` still has time; `column` is one of them. */
export function timely(alias: string, column: string): string {
  return `${FUNCTION}(${alias}.${column} = 0)`;
}

/**
 * The same for the rows of a table, of which a statement may look at any number: about one of sixteen, wherever their
 * numbers lie, because Node keeps the arguments of all calls until the statement ends.
 */
export function timelyTable(alias: string, column: string, isNumbered: boolean): string {
  return `(NOT ${someOf(alias, isNumbered)} OR ${timely(alias, column)})`;
}

/** Tables of other programs and views may have no numbers. */
function someOf(alias: string, isNumbered: boolean): string {
  if (!isNumbered) return '(random() & 15 = 0)';
  return `((${alias}._rowid_ * 40503 >> 8) & 15 = 0)`;
}

/** The function that makes the version of a row from its values, where the table has no column for it. */
export const ROW_DIGEST = 'portico_digest';

function rowDigest(...values: readonly unknown[]): number {
  const hash = createHash('sha256');
  for (const value of values) {
    const bytes = value instanceof Uint8Array ? value : Buffer.from(String(value));
    hash.update(`${typeof value} ${bytes.length} `).update(bytes);
  }
  // As many bytes as a double holds.
  return hash.digest().readUIntBE(0, 6);
}

/** The trigger of one connection that bounds the time of what a removal does to other rows, looking at some of them. */
export function timedTrigger(table: string, nth: number, event: string, isNumbered: boolean): string {
  const name = `portico_timely_${nth}`;
  return `CREATE TEMP TRIGGER IF NOT EXISTS ${name} AFTER ${event} ON main.${table} WHEN ${someOf('OLD', isNumbered)} BEGIN SELECT ${FUNCTION}(0); END`;
}

/** Whether an error, perhaps one that another thread has described, is that of a statement that took too long. */
export function isTooLong(error: unknown): boolean {
  return String(error).includes(TOO_LONG);
}

/**
 * Ends the statements of a connection that take too long, since SQLite runs one at a time and Node cannot interrupt
 * it. Counts processor time: on a busy machine a statement may take longer.
 */
export class StatementTime {
  /** Undefined: the first look at the clock begins the time. */
  #began: number | undefined;
  #most = MAX_TIME;
  #calls = 0;

  constructor(db: DatabaseSync) {
    // Of a declared length, so that SQLite checks the number of arguments.
    db.function(FUNCTION, (_row) => {
      if (++this.#calls % LOOK === 0) this.check();
      return 1;
    });
    db.function(ROW_DIGEST, { deterministic: true, varargs: true, useBigIntArguments: true }, rowDigest);
  }

  /** Must be called before a statement that may take long: at most `most` milliseconds. */
  begin(most = MAX_TIME): void {
    this.#most = most;
    this.#began = processorTime();
  }

  /** Must be called before a statement that is rarely long: spares it the clock, which only its first look reads. */
  beginAtLook(): void {
    this.#most = MAX_TIME;
    this.#began = undefined;
  }

  /** Returns how long statements have taken since `begin`. */
  end(): number {
    const taken = processorTime() - (this.#began ?? processorTime());
    this.beginAtLook();
    return taken;
  }

  /** Throws if the time is over. */
  check(): void {
    const now = processorTime();
    this.#began ??= now;
    if (now - this.#began > this.#most) throw new Error(TOO_LONG);
  }
}

/** The processor time of the thread, in milliseconds. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
