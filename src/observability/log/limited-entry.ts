import type { Logger } from 'pino';

/** How many entries of one message are logged within a second, as they come. */
const MAX_PER_SECOND = 100;
const SECOND = 1_000;

type Level = 'debug' | 'info' | 'warn' | 'error';

/** Logs one message again and again; disposing of it logs the number suppressed so far. */
export interface LimitedEntry extends Disposable {
  /** Logs an entry, or counts it once the second has had its number of entries. */
  write(fields: Readonly<Record<string, unknown>>): void;
}

/**
 * Bounds the entries of one message whose rate the clients choose: the first hundred of a second are logged one by one,
 * the others by one entry at the end of that second, with their number as `suppressed`.
 */
export function limitedEntry<L extends Level = 'info'>(
  log: Pick<Logger, L>,
  message: string,
  level: L = 'info' as L,
): LimitedEntry {
  let logged = 0;
  let suppressed = 0;
  let timer: NodeJS.Timeout | undefined;

  function endSecond(): void {
    timer = undefined;
    logged = 0;
    if (suppressed > 0) log[level]({ suppressed }, message);
    suppressed = 0;
  }

  return {
    write(fields) {
      timer ??= setTimeout(endSecond, SECOND).unref();
      if (logged < MAX_PER_SECOND) {
        logged++;
        log[level](fields, message);
      } else suppressed++;
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      endSecond();
    },
  };
}
