import { availableParallelism } from 'node:os';

/** The minimum share of the time for handling. */
const LEAST = 1 / 4;
/** The doors may use this part of the time left to them before handling gets less. */
const BUSY = 0.6;
/** Time between two measurements, in milliseconds. */
const LOOK = 20;
/** Limits the change after a long time without measurements to this many steps. */
const MAX_STEPS = 10;
/** How long one turn starts attempts, in milliseconds, before the doors run again. */
const TURN = 1;
/**
 * The cost of a job outside its turn, here and in the writing thread or server, as a multiple of an
 * acknowledgement. It assumes a claimed job: under load most are claimed, and a claim takes as long as
 * storing a delivery.
 */
const BESIDE = 1.6;
/** How much unused handling time may accumulate, in milliseconds: turns can start late. */
const MAX_CREDIT = 20;
/** How much time handling may owe, in milliseconds, however much a handler has used. */
const MAX_DEBT = 100;

/** Starts attempts until `end`, by `performance.now()`; returns their number. Requests a turn if needed. */
type BeginAttempts = (end: number) => number;

/** The clocks that regulate the share, in milliseconds. */
interface Clocks {
  now(): number;
  /** Total time without work so far. */
  idle(): number;
}

/**
 * Shares the time of the event loop between handling and the doors; acknowledging comes first. Attempts start
 * in turns, which follow each other directly while the doors keep up. Once acknowledging needs most of the
 * time left to it, handling gets less and less, down to a quarter. Time that a handler computes is charged to
 * handling, so this holds for any handler. Jobs that cannot start are not claimed either.
 */
export class HandlingShare implements Disposable {
  readonly #clocks: Clocks;
  #waiting: BeginAttempts[] = [];
  #share = 1;
  #isScheduled = false;
  #timer: NodeJS.Timeout | undefined;
  #turnBegan = 0;
  #begunInTurn = 0;
  /** The time that handling may still use, in milliseconds, as of `#paidAt`. */
  #budget = 0;
  #paidAt = 0;
  /** The measured cost of a job outside its turn, in milliseconds. */
  #beside = 0;
  // Counters since the last measurement.
  #lookedAt: number;
  #idleAt: number;
  #acknowledged = 0;
  #begun = 0;
  #inTurns = 0;

  constructor(clocks: Clocks = ownClocks()) {
    this.#clocks = clocks;
    this.#lookedAt = clocks.now();
    this.#idleAt = clocks.idle();
  }

  /** The share of the time that handling may use now, from a quarter to 1. */
  get share(): number {
    // Measured here too, because an idle process has no turns that would do so.
    this.#look(this.#clocks.now());
    return this.#share;
  }

  /** Counts an acknowledged delivery. */
  acknowledged(): void {
    this.#acknowledged++;
  }

  /** Calls `begin` in one of the next turns. */
  request(begin: BeginAttempts): void {
    if (!this.#waiting.includes(begin)) this.#waiting.push(begin);
    if (!this.#isScheduled) this.#schedule();
  }

  [Symbol.dispose](): void {
    this.#waiting = [];
    clearTimeout(this.#timer);
  }

  readonly #schedule = (): void => {
    this.#isScheduled = true;
    const now = this.#clocks.now();
    this.#look(now);
    const wait = this.#wait(now);
    if (wait > 0) {
      // Doors that have become idle end the wait.
      this.#timer = setTimeout(this.#schedule, Math.min(wait, LOOK));
      return;
    }
    // In another iteration of the event loop, so that the work of the doors comes first.
    setImmediate(this.#turn);
    // A second immediate runs after all microtasks of the attempts.
    setImmediate(this.#endTurn);
  };

  readonly #turn = (): void => {
    this.#turnBegan = this.#clocks.now();
    this.#begunInTurn = 0;
    const end = this.#turnBegan + TURN;
    // Callbacks that request another turn queue behind the others.
    for (let begin = this.#waiting.shift(); begin !== undefined; begin = this.#waiting.shift()) {
      this.#begunInTurn += begin(end);
      if (this.#clocks.now() >= end) break;
    }
  };

  readonly #endTurn = (): void => {
    const took = this.#clocks.now() - this.#turnBegan;
    this.#inTurns += took;
    this.#begun += this.#begunInTurn;
    const cost = took + this.#begunInTurn * this.#beside;
    this.#budget = Math.max(this.#budget - cost, -MAX_DEBT);
    this.#isScheduled = false;
    if (this.#waiting.length > 0) this.#schedule();
  };

  /** How long the next turn has to wait, in milliseconds. */
  #wait(now: number): number {
    const earned = (now - this.#paidAt) * this.#share;
    this.#paidAt = now;
    this.#budget = this.#share === 1 ? 0 : Math.min(MAX_CREDIT, this.#budget + earned);
    return this.#budget < 0 ? Math.max(1, Math.ceil(-this.#budget / this.#share)) : 0;
  }

  /** Updates the share: time outside turns is divided between acknowledgements and jobs by their numbers. */
  #look(now: number): void {
    const elapsed = now - this.#lookedAt;
    if (elapsed < LOOK) return;
    const idleAt = this.#clocks.idle();
    const idle = idleAt - this.#idleAt;
    const others = Math.max(0, elapsed - idle - this.#inTurns);
    const weight = this.#acknowledged + BESIDE * this.#begun;
    const doors = weight === 0 ? 0 : (others * this.#acknowledged) / weight;
    const busy = doors === 0 ? 0 : doors / (doors + Math.max(0, idle));
    const factor = (1 + BUSY - busy) ** Math.min(MAX_STEPS, elapsed / LOOK);
    this.#share = Math.min(1, Math.max(LEAST, this.#share * factor));
    // Without jobs, what those begun before still take would count as the cost of acknowledgements.
    if (this.#begun > 0 || this.#beside === 0) this.#beside = weight === 0 ? 0 : (others * BESIDE) / weight;
    [this.#lookedAt, this.#idleAt] = [now, idleAt];
    [this.#acknowledged, this.#begun, this.#inTurns] = [0, 0, 0];
  }
}

/** The clocks of this process. If its threads use all cores, the event loop does not count as idle. */
function ownClocks(): Clocks {
  const cores = availableParallelism();
  let idle = 0;
  let last = { at: performance.now(), loop: 0, cpu: 0 };
  return {
    now: () => performance.now(),
    idle() {
      const { user, system } = process.cpuUsage();
      const current = {
        at: performance.now(),
        loop: performance.eventLoopUtilization().idle,
        cpu: (user + system) / 1_000,
      };
      const spare = (current.at - last.at) * cores - (current.cpu - last.cpu);
      idle += Math.max(0, Math.min(current.loop - last.loop, spare));
      last = current;
      return idle;
    },
  };
}
