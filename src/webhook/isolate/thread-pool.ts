import { HandlerThread, type ThreadOptions } from './thread.ts';

/** A thread that has run nothing for this long ends, in milliseconds. */
const IDLE = 30_000;

/** The worker threads of isolated handlers: one for each running delivery, and those that wait for the next one. */
export class ThreadPool implements AsyncDisposable {
  readonly #options: ThreadOptions;
  readonly #threads = new Set<HandlerThread>();
  /** The one that was used last is the last. */
  readonly #idle = new Map<HandlerThread, NodeJS.Timeout>();

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /** The number of threads. */
  get size(): number {
    return this.#threads.size;
  }

  /** An idle thread, or a new one, for one delivery; it may still be starting. */
  take(): HandlerThread {
    for (const [thread, timer] of [...this.#idle].reverse()) {
      clearTimeout(timer);
      this.#idle.delete(thread);
      if (thread.usable) return thread;
    }
    const thread = new HandlerThread(this.#options);
    this.#threads.add(thread);
    void thread.ended.then(() => {
      this.#threads.delete(thread);
      clearTimeout(this.#idle.get(thread));
      this.#idle.delete(thread);
    });
    return thread;
  }

  /** Takes a thread back when its delivery has ended. */
  give(thread: HandlerThread): void {
    if (!this.#threads.has(thread)) return;
    if (!thread.usable) {
      if (!thread.terminated) void thread.close();
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.delete(thread);
      void thread.close();
    }, IDLE);
    this.#idle.set(thread, timer.unref());
  }

  /** Ends all threads. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Array.from(this.#threads, (thread) => thread.close()));
  }
}
