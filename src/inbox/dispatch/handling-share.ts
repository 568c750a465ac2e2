import { availableParallelism } from 'node:os';

/** The least share of the time that handling gets. */
const LEAST = 1 / 4;
/** How much of the time that handling leaves to them the doors may need before handling gets less. */
const BUSY = 0.6;
/** Time between two looks at how busy the doors are, in milliseconds. */
const LOOK = 20;
/** A share changes at most so often at once, after a time without looks. */
const MAX_STEPS = 10;
/** How long attempts are begun one after the other, in milliseconds; then the doors have their turn. */
const TURN = 1;
/**
 * What a job costs beside its turn, here and in the thread or server that writes, as a multiple of an acknowledgement. It
 * is that of a job that was claimed: under load most are, and a claim alone takes as long as storing a delivery.
 */
const BESIDE = 1.6;
/** What handling may save for later, in milliseconds of its time: its turns can begin late. */
const MAX_CREDIT = 20;
/** What handling may owe, whatever a handler has used. */
const MAX_DEBT = 100;

/** Begins attempts until `end`, by `performance.now()`; returns their number. It asks for another turn if it needs one. */
type BeginAttempts = (end: number) => number;

/** What the share is regulated by, in milliseconds. */
interface Clocks {
  now(): number;
  /** For how long there was nothing to do so far. */
  idle(): number;
}

/**
 * Shares the time of the event loop between handling and the doors: acknowledging comes first. Attempts begin in turns.
 * While the doors keep up, turn follows turn. Once acknowledging needs most of the time that handling leaves to it,
 * handling gets less and less, down to a quarter. A handler that computes is charged its time, so that holds whatever
 * handlers do. What does not begin is not claimed either.
 */
export class HandlingShare implements Disposable {
  readonly #clocks: Clocks;
  #waiting: BeginAttempts[] = [];
  #share = 1;
  #isScheduled = false;
  #timer: NodeJS.Timeout | undefined;
  #turnBegan = 0;
  #begunInTurn = 0;
  /** What handling may still use, in milliseconds, by `#paidAt`. */
  #budget = 0;
  #paidAt = 0;
  /** What a job costs beside its turn, in milliseconds. */
  #beside = 0;
  // Since the last look.
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

  /** The part of the time that handling may have now, from a quarter to 1. */
  get share(): number {
    // Where nothing has happened since, nobody else has looked.
    this.#look(this.#clocks.now());
    return this.#share;
  }

  /** Notes that a delivery was acknowledged. */
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
      this.#timer = setTimeout(this.#schedule, wait);
      return;
    }
    // In another iteration of the event loop, so that what the doors have to do comes first.
    setImmediate(this.#turn);
    // It runs when all has run that the attempts have left to microtasks.
    setImmediate(this.#endTurn);
  };

  readonly #turn = (): void => {
    this.#turnBegan = this.#clocks.now();
    this.#begunInTurn = 0;
    const end = this.#turnBegan + TURN;
    // Those that ask again come behind the others.
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

  /**
   * Regulates the share. The time of this thread outside of turns belongs to acknowledgements and to what jobs need beside
   * their turns, in proportion to their numbers.
   */
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
    this.#beside = weight === 0 ? 0 : (others * BESIDE) / weight;
    [this.#lookedAt, this.#idleAt] = [now, idleAt];
    [this.#acknowledged, this.#begun, this.#inTurns] = [0, 0, 0];
  }
}

/**
 * The clocks of this process. Where its threads have all of its cores to do, its event loop is not idle, though it waits
 * for the thread that writes.
 */
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
