import { AsyncLocalStorage } from 'node:async_hooks';

/** The least that a statement counts, in milliseconds: the clock of a processor may stand still for longer. */
const LEAST = 0.001;

/**
 * The time that the statements of an operation have together, which is that of one statement alone. SQLite counts
 * processor time, PostgreSQL the time of the clock while at least one of them runs.
 */
export class StatementBudget {
  #spent = 0;
  #running = 0;
  #since = 0;

  /** The rest of `most` milliseconds for the next statement; 0 or less if it must not begin. */
  left(most: number): number {
    return most - this.#spent - (this.#running === 0 ? 0 : performance.now() - this.#since);
  }

  /** Counts processor time, in milliseconds. */
  spend(time: number): void {
    this.#spent += Math.max(LEAST, time);
  }

  /** Counts the time of the clock until the returned function is called. */
  start(): () => void {
    if (this.#running++ === 0) this.#since = performance.now();
    return () => {
      if (--this.#running === 0) this.spend(performance.now() - this.#since);
    };
  }
}

const current = new AsyncLocalStorage<StatementBudget>();

/** Runs an operation whose statements have one budget. */
export function withStatementBudget<T>(run: () => T): T {
  return current.run(new StatementBudget(), run);
}

/** The budget of the operation that is running; undefined outside of one. */
export function statementBudget(): StatementBudget | undefined {
  return current.getStore();
}
