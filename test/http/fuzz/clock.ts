/** Ticks of the event loop, counted while somebody waits for one. */
class Clock {
  #now = 0;
  readonly #waiting = new Map<number, (() => void)[]>();

  get now(): number {
    return this.#now;
  }

  /** Resolves after some ticks. One immediate per tick serves all who wait. */
  ticks(count: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) setImmediate(this.#tick);
      const at = this.#now + count;
      const others = this.#waiting.get(at);
      if (others === undefined) this.#waiting.set(at, [resolve]);
      else others.push(resolve);
    });
  }

  readonly #tick = () => {
    this.#now++;
    const due = this.#waiting.get(this.#now) ?? [];
    this.#waiting.delete(this.#now);
    for (const resolve of due) resolve();
    if (this.#waiting.size > 0) setImmediate(this.#tick);
  };
}

export const clock = new Clock();
