import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import type { Turns } from '../../core/turns.ts';

/** What the result of one operation may hold. */
export interface ResultLimits {
  /** Maximum values: objects, items of lists and leaves; default 1,000,000. */
  readonly maxResultValues: number;
  /** Maximum bytes of its JSON; default 16 MiB. */
  readonly maxResultBytes: number;
}

/** The limits where an option sets none. */
export const DEFAULT_RESULT_LIMITS: ResultLimits = {
  maxResultValues: 1_000_000,
  maxResultBytes: 16 * 1024 * 1024,
};

/** Bytes of the result between two looks at the clock. */
const STEP = 32 * 1024;

/** What one run has made of its result so far, and may still make. */
export class ResultBudget {
  values = 0;
  /** Bytes of JSON, at least: what escapes and other characters add is known once the text is made. */
  bytes = 0;
  /** When `bytes` has reached this, a list asks `isSpent`. */
  checkAt = STEP;
  /** Why the run ends without data; undefined while the result is within its limits. */
  exceeded: GraphQLError | undefined;
  /** Whether the run has finished; what still runs is ignored then. */
  isClosed = false;
  readonly #limits: ResultLimits;
  readonly #turns: Turns;
  /** Bytes of text that lists of the result hold. */
  #held = 0;
  /** The first look at the clock, and when the slice ends; 0 before it. */
  #began = 0;
  #until = 0;
  #turn: Promise<void> | undefined;

  constructor(limits: ResultLimits, turns: Turns) {
    this.#limits = limits;
    this.#turns = turns;
  }

  /** Maximum values of the result. */
  get maxValues(): number {
    return this.#limits.maxResultValues;
  }

  /** Whether text was made of a part of the result. */
  get holdsText(): boolean {
    return this.#held > 0;
  }

  /** Whether the result is within its limits; else `exceeded` says which one it is past. */
  isWithin(): boolean {
    const { maxResultValues, maxResultBytes } = this.#limits;
    if (this.values > maxResultValues) this.#exceed('maxResultValues', `${maxResultValues} values`);
    if (this.bytes > maxResultBytes || this.#held > maxResultBytes) {
      this.#exceed('maxResultBytes', `${maxResultBytes} bytes`);
    }
    return this.exceeded === undefined;
  }

  /** Whether the slice is over, so that the rest has to wait for `turn`. Throws `exceeded`. */
  isSpent(): boolean {
    if (!this.isWithin()) throw this.exceeded;
    const now = performance.now();
    if (this.#began === 0) {
      this.#began = now;
      // What begins while there is too much text waits for its turn at the next look.
      this.#until = this.#turns.isFull ? now : now + this.#turns.slice;
    } else if (now >= this.#until) return true;
    this.checkAt = this.bytes + STEP;
    return false;
  }

  /** Resolves when the run may go on, after others had their turn. Rejects once the run has finished. */
  turn(): Promise<void> {
    this.#turn ??= this.#turns.next(this.#began).then(() => {
      this.#turn = undefined;
      if (this.isClosed) throw new Error('The run has finished');
      this.#until = performance.now() + this.#turns.slice;
      this.checkAt = this.bytes + STEP;
    });
    return this.#turn;
  }

  /** Counts text that is kept until the run closes. Throws `exceeded`. */
  hold(bytes: number): void {
    if (this.isClosed) return;
    this.#held += bytes;
    this.#turns.hold(bytes);
    if (!this.isWithin()) throw this.exceeded;
  }

  /** Ends the run: nothing more is made, and its text is the reply's business. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#turns.release(this.#held);
  }

  #exceed(limit: keyof ResultLimits, what: string): void {
    this.exceeded ??= new GraphQLError(`The result has more than ${what} (${limit}); ask for less`, {
      extensions: { code: 'LIMIT_EXCEEDED' satisfies ErrorCode, limit },
    });
  }
}
