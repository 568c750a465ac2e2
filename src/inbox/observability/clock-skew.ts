import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { Inbox } from '../inbox.ts';

/** A measured difference is used for this long, in milliseconds. */
const MAX_AGE = 5_000;

/** By inbox, so that the meter and the health check share one. */
const skews = new WeakMap<object, ClockSkew>();

/**
 * The difference between the clock of this process and that of the store, which decides what is due. Whoever asks shares
 * one measurement.
 */
export class ClockSkew {
  readonly #inbox: Pick<Inbox, 'clock'>;
  #measured: { readonly at: number; readonly ahead: MaybePromise<number> } | undefined;

  constructor(inbox: Pick<Inbox, 'clock'>) {
    this.#inbox = inbox;
  }

  static of(inbox: Pick<Inbox, 'clock'>): ClockSkew {
    const skew = skews.get(inbox) ?? new ClockSkew(inbox);
    skews.set(inbox, skew);
    return skew;
  }

  /** How far the clock of this process is ahead, in milliseconds; NaN when the store does not answer. */
  read(): MaybePromise<number> {
    const now = performance.now();
    if (this.#measured === undefined || now - this.#measured.at > MAX_AGE) {
      this.#measured = { at: now, ahead: this.#measure() };
    }
    return this.#measured.ahead;
  }

  #measure(): MaybePromise<number> {
    const before = Date.now();
    // The store has read its clock somewhere between the two.
    const ahead = whenReady(this.#inbox.clock(), (time) => (before + Date.now()) / 2 - time);
    return ahead instanceof Promise ? ahead.catch(() => Number.NaN) : ahead;
  }
}
