import { setImmediate as tick } from 'node:timers/promises';

/** For how long nobody may have connected, in milliseconds. */
const QUIET = 20;
/** What one tick counts at most: in a longer one the process, and its clients with it, may not have run. In milliseconds. */
const TICK = 2;
/** In a longer tick the process may have been stopped behind its look at the port, in milliseconds; one that does nothing takes microseconds. */
const IMMEDIATE = 0.1;
/** After this one tick in which nobody connects is enough, in milliseconds. */
const PATIENCE = 1_500;
/** The longest wait where somebody connects in every tick, in milliseconds. */
const MAX_WAIT = 2_000;

/**
 * Resolves in the moment when nobody has connected for a while, so that the port can be closed before the next client
 * comes: the system resets connections that wait to be accepted then. Of these one is accepted in a tick.
 *
 * @param accepted How many connections were accepted so far.
 */
export async function untilQuiet(accepted: () => number): Promise<void> {
  const started = performance.now();
  let before = started;
  let count = accepted();
  let quiet = 0;
  while (before - started < MAX_WAIT) {
    await tick();
    const now = performance.now();
    const next = accepted();
    const took = now - before;
    quiet = next === count ? quiet + Math.min(took, TICK) : 0;
    const isEnough = quiet >= QUIET || (quiet > 0 && now - started >= PATIENCE);
    if (isEnough && took < IMMEDIATE) return;
    count = next;
    before = now;
  }
}
