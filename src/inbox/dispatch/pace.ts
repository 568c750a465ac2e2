/** How long claimed jobs may wait for a slot, about, in milliseconds. */
const AHEAD = 200;
/** Maximum number of jobs that wait for a slot. */
const MAX_AHEAD = 256;

/**
 * How many jobs a worker claims ahead, so that its handlers run while it claims others and records how they ended: as many
 * as ended in the last 200 ms. So next to nothing is claimed ahead for slow handlers, which other processes could run.
 */
export class Pace {
  #since = 0;
  #ended = 0;
  #before = 0;

  /** Notes that a handler has ended; `now` is `performance.now()`. */
  note(now: number): void {
    this.#turn(now);
    this.#ended++;
  }

  /** The number of jobs to claim beyond the free slots. */
  ahead(now: number): number {
    this.#turn(now);
    return Math.min(MAX_AHEAD, Math.max(this.#ended, this.#before));
  }

  #turn(now: number): void {
    const passed = now - this.#since;
    if (passed < AHEAD) return;
    this.#before = passed < 2 * AHEAD ? this.#ended : 0;
    this.#ended = 0;
    this.#since = now;
  }
}
