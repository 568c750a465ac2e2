import { HttpProblem } from '../problem.ts';
import type { Need } from './need.ts';

/** How late a service may be before it refuses requests. */
export interface LoadLimits {
  /** Delay of the event loop, in milliseconds; 0 for no limit. */
  readonly maxLoopDelay: number;
  /** Time that a write has waited for its commit, in milliseconds; 0 for no limit. */
  readonly maxWriteDelay: number;
  /** The time that a write waits for its commit now, in milliseconds. */
  readonly writeDelay: () => number;
}

/** How often the event loop is looked at, in milliseconds. */
const INTERVAL = 50;

/**
 * Refuses what a service that is late could only make later. It watches the event loop from the first request on: what the
 * start has kept busy is no reason to refuse one.
 */
export class Load implements Disposable {
  readonly #limits: LoadLimits;
  #timer: NodeJS.Timeout | undefined;
  #loopIsLate = false;

  constructor(limits: LoadLimits) {
    this.#limits = limits;
  }

  /** Why a request is refused now; undefined when there is no reason. */
  refusal(need: Need | undefined): HttpProblem | undefined {
    if (this.#limits.maxLoopDelay > 0) this.#timer ??= this.#watchLoop();
    if (this.#loopIsLate) return LATE;
    const { maxWriteDelay, writeDelay } = this.#limits;
    if (need !== 'write' || maxWriteDelay === 0) return undefined;
    return writeDelay() > maxWriteDelay ? WRITES_LATE : undefined;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #watchLoop(): NodeJS.Timeout {
    let expected = performance.now() + INTERVAL;
    // Timers come before the requests that have arrived meanwhile.
    return setInterval(() => {
      const now = performance.now();
      this.#loopIsLate = now - expected > this.#limits.maxLoopDelay;
      expected = now + INTERVAL;
    }, INTERVAL).unref();
  }
}

const options = { headers: { 'retry-after': '1' } };
const LATE = new HttpProblem(503, 'OVERLOADED', 'The service is late; try again later', options);
const WRITES_LATE = new HttpProblem(503, 'OVERLOADED', 'Writes are late; try again later', options);
