/** Runs asynchronous work at the start, at an interval and on demand; runs never overlap. */
export class PeriodicTask {
  readonly #interval: number;
  readonly #work: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** Whether a run was requested during the current one, which may have come too late for it. */
  #again = false;
  #stopped = false;

  /** `interval` is in milliseconds. `work` must not reject; it may check `stopped` to end early. */
  constructor(interval: number, work: () => Promise<void>) {
    this.#interval = interval;
    this.#work = work;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  start(): void {
    this.#timer = setInterval(() => this.#run(), this.#interval);
    this.#run();
  }

  /** Runs the work now, or once more after the current run. */
  request(): void {
    if (this.#running === undefined) this.#run();
    else this.#again = true;
  }

  /** Resolves once the current run has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  #run(): void {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined;
      if (!this.#again || this.#stopped) return;
      this.#again = false;
      this.#run();
    });
  }
}
