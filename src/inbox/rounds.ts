/** Work that is done at the start and then at an interval, never twice at the same time. */
export class Rounds {
  readonly #interval: number;
  readonly #work: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  /** `interval` is in milliseconds; `work` never fails, and looks at `stopped` where it can end early. */
  constructor(interval: number, work: () => Promise<void>) {
    this.#interval = interval;
    this.#work = work;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  start(): void {
    this.#timer = setInterval(() => this.#begin(), this.#interval);
    this.#begin();
  }

  /** Ends with the work that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  #begin(): void {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined;
    });
  }
}
