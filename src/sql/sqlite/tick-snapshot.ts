import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { readRow } from './connection.ts';

/**
 * Lets the reads of one tick of the event loop share a read transaction, because starting and ending one costs twice as
 * much as a read by key. The first read of a tick starts none, so a lone read costs nothing extra.
 */
export class TickSnapshot {
  readonly #reads: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #version: StatementSync;
  readonly #mustYield: () => boolean;
  /** Whether this tick has had a read. */
  #entered = false;

  /** While `mustYield`, each read is a transaction of its own, so that a checkpoint can pass between two of them. */
  constructor(reads: DatabaseSync, mustYield: () => boolean) {
    this.#reads = reads;
    this.#mustYield = mustYield;
    this.#begin = reads.prepare('BEGIN');
    this.#end = reads.prepare('COMMIT');
    this.#version = reads.prepare('PRAGMA data_version');
  }

  /** Called before each read that may share the transaction. */
  readonly enter = (): void => {
    if (!this.#entered) {
      this.#entered = true;
      setImmediate(this.#endTick);
    } else if (!this.#mustYield()) this.#beginOnce();
  };

  /** Called before several reads that have to see the same state, even where they are the first of their tick. */
  hold(): void {
    this.enter();
    this.#beginOnce();
  }

  /** Called behind the reads of `hold`: they make way for a checkpoint like any other. */
  giveWay(): void {
    if (this.#mustYield()) this.refresh();
  }

  /** Changes with each commit of another connection, in any process; inside a snapshot it stays the same. */
  version(): number {
    return readRow<{ data_version: number }>(this.#version)?.data_version ?? 0;
  }

  /** Ends the transaction. Called before a commit is acknowledged, so that later reads see it. */
  readonly refresh = (): void => {
    if (!this.#reads.isOpen || !this.#reads.isTransaction) return;
    try {
      this.#end.run();
    } catch {
      // A read of it has failed, and whoever asked was told; SQLite may have ended it by itself.
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
