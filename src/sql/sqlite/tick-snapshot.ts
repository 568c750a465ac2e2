import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { readRow } from './connection.ts';

/**
 * Lets the reads of one tick of the event loop share a read transaction, because starting and ending one
 * costs twice as much as a read by key. The first read of a tick does not start one, so a single read has no
 * extra cost.
 */
export class TickSnapshot {
  readonly #reads: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #version: StatementSync;
  readonly #mustYield: () => boolean;
  /** Whether this tick has had a read. */
  #entered = false;

  /**
   * While `mustYield` returns true, reads do not share a transaction, so that a checkpoint can run between
   * two of them.
   */
  constructor(reads: DatabaseSync, mustYield: () => boolean) {
    this.#reads = reads;
    this.#mustYield = mustYield;
    this.#begin = reads.prepare('BEGIN');
    this.#end = reads.prepare('COMMIT');
    this.#version = reads.prepare('PRAGMA data_version');
  }

  /** Must be called before each read that may share the transaction. */
  readonly enter = (): void => {
    if (!this.#entered) {
      this.#entered = true;
      setImmediate(this.#endTick);
    } else if (!this.#mustYield()) this.#beginOnce();
  };

  /**
   * Must be called before several reads that need the same snapshot, even if they are the first of their
   * tick.
   */
  hold(): void {
    this.enter();
    this.#beginOnce();
  }

  /** Must be called after the reads of `hold`, to let a waiting checkpoint run. */
  giveWay(): void {
    if (this.#mustYield()) this.refresh();
  }

  /** Changes with each commit of another connection in any process; constant within a snapshot. */
  version(): number {
    return readRow<{ data_version: number }>(this.#version)?.data_version ?? 0;
  }

  /** Ends the transaction. Called before a commit is acknowledged, so that later reads see it. */
  readonly refresh = (): void => {
    if (!this.#reads.isOpen || !this.#reads.isTransaction) return;
    try {
      this.#end.run();
    } catch {
      // A read failed and its caller has the error; SQLite may have ended the transaction already.
      if (this.#reads.isTransaction) this.#reads.exec('ROLLBACK');
    }
  };

  #beginOnce(): void {
    if (this.#reads.isOpen && !this.#reads.isTransaction) this.#begin.run();
  }

  readonly #endTick = (): void => {
    this.#entered = false;
    this.refresh();
  };
}
