import { setImmediate as turn } from 'node:timers/promises';

interface Waiting {
  readonly name: string;
  readonly settle: () => void;
}

/**
 * Settles promises one at a time, each in a turn of its own, in the order of their names. Two programs that wait for
 * the same promises then see the same events in the same order, however they chain them.
 */
export class Schedule {
  readonly #waiting: Waiting[] = [];
  #running = false;

  /** Resolves to what `value` gives once it is this name's turn; rejects with what it throws. */
  later<T>(name: string, value: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        try {
          resolve(value());
        } catch (error) {
          reject(error);
        }
      };
      this.#waiting.push({ name, settle });
      if (!this.#running) void this.#run();
    });
  }

  /** Waits until nothing is left to settle. */
  async drained(): Promise<void> {
    while (this.#running) await turn();
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (;;) {
      // By then everything that the last one set free is here.
      await turn();
      // Those of one name keep the order in which they came.
      this.#waiting.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
      const next = this.#waiting.shift();
      if (next === undefined) break;
      next.settle();
    }
    this.#running = false;
  }
}
