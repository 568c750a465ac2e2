import { setTimeout as sleep, setImmediate as tick } from 'node:timers/promises';

/** For how long nobody may have connected, in milliseconds. */
const QUIET = 20;
/** Between two looks; a connection that waits ends it. In milliseconds. */
const PAUSE = 1;
/** What one pause counts at most: in a longer one the process, and its clients with it, may not have run. In milliseconds. */
const COUNTED = 2;
/** After a longer last look the process may have been stopped behind it, in milliseconds; one that finds nothing takes microseconds. */
const IMMEDIATE = 0.1;
/** After this one look that finds nobody is enough, in milliseconds. */
const FIRST_LIMIT = 1_500;
/** The longest wait where every look finds somebody, in milliseconds. */
const MAX_WAIT = 2_000;

/**
 * Resolves in the moment when nobody has connected for a while, so that the port can be closed before the next client
 * comes: the system resets connections that wait to be accepted then. Of these one is accepted in a tick.
 *
 * @param accepted How many connections were accepted so far.
 */
export async function untilQuiet(accepted: () => number): Promise<void> {
  const started = performance.now();
  let count = accepted();
  let quiet = 0;
  for (;;) {
    const before = performance.now();
    const waited = before - started;
    const isEnough = quiet >= QUIET || (quiet > 0 && waited >= FIRST_LIMIT);
    await (isEnough ? tick() : sleep(PAUSE));
    const took = performance.now() - before;
    const next = accepted();
    if (next !== count) quiet = 0;
    else if (isEnough && took < IMMEDIATE) return;
    else quiet += Math.min(took, COUNTED);
    if (waited >= MAX_WAIT) return;
    count = next;
  }
}
