import type { Recipient } from './recipient.ts';

/** A recipient that somebody else tells when it has left. */
export class Departure implements Recipient {
  readonly #listeners = new Set<() => void>();
  #hasLeft = false;

  onLeave(listener: () => void): () => void {
    if (this.#hasLeft) listener();
    // Each its own, should the same be given twice.
    const called = () => listener();
    this.#listeners.add(called);
    return () => this.#listeners.delete(called);
  }

  leave(): void {
    this.#hasLeft = true;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}
