import { LatencyHistogram } from './latency-histogram.ts';

/** A reply that took longer was a stream of events, in milliseconds: how long people look is no latency. */
const STREAM = 60_000;

/** Counts the replies of one door; nothing is allocated per reply. */
export class Traffic {
  readonly durations = new LatencyHistogram();
  #replies = 0;
  #errors = 0;

  get replies(): number {
    return this.#replies;
  }

  /** Those of status 500 and above. */
  get errors(): number {
    return this.#errors;
  }

  record(status: number, milliseconds: number): void {
    this.#replies++;
    if (status >= 500) this.#errors++;
    if (milliseconds < STREAM) this.durations.record(milliseconds);
  }
}
