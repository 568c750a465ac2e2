/** Maximum size of the bodies of all running attempts of a process, in bytes; one body for each target comes on top. */
export const MAX_CLAIMED_BYTES = 64 * 1024 * 1024;

/** What a claim may take; it is given back when its attempts have ended. */
export interface ClaimShare {
  readonly bytes: number;
  /** Gives back what the claim has not taken. */
  settle(taken: number): void;
}

/** Bounds the bodies that the running attempts of all targets hold together. */
export class ClaimedBytes {
  readonly #max: number;
  #held = 0;
  /** With the priority of each. */
  readonly #waiting = new Map<() => void, number>();

  constructor(max = MAX_CLAIMED_BYTES) {
    this.#max = max;
  }

  /** Whether nothing is left. */
  get isFull(): boolean {
    return this.#held >= this.#max;
  }

  /** Sets aside half of what is left, so that claims at the same time cannot exceed the limit together. */
  share(): ClaimShare {
    return this.#setAside(Math.max(0, Math.ceil((this.#max - this.#held) / 2)));
  }

  /** Sets aside so many bytes; undefined when they are not left. */
  reserve(bytes: number): ClaimShare | undefined {
    return bytes > this.#max - this.#held ? undefined : this.#setAside(bytes);
  }

  #setAside(bytes: number): ClaimShare {
    this.#held += bytes;
    return { bytes, settle: (taken) => this.release(bytes - taken) };
  }

  /** Gives back the bodies of ended attempts. */
  release(bytes: number): void {
    this.#held -= bytes;
    if (this.#waiting.size === 0 || this.isFull) return;
    const waiting = [...this.#waiting].sort(([, one], [, other]) => other - one);
    this.#waiting.clear();
    for (const [wake] of waiting) wake();
  }

  /** Calls back once there is something left again, those with a higher priority first. */
  onRoom(wake: () => void, priority = 0): void {
    this.#waiting.set(wake, priority);
  }
}
