import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { readRow } from './read-row.ts';

/**
 * Lets the reads of one turn of the event loop share a read transaction: to begin and end one costs twice what a
 * read by key costs. The first read of a turn begins none, so that a lone one pays nothing.
 */
export class TurnSnapshot {
  readonly #reads: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #version: StatementSync;
  /** Whether this turn has had a read. */
  #entered = false;

  constructor(reads: DatabaseSync) {
    this.#reads = reads;
    this.#begin = reads.prepare('BEGIN');
    this.#end = reads.prepare('COMMIT');
    this.#version = reads.prepare('PRAGMA data_version');
  }

  /** Called before each read that may share. */
  readonly enter = (): void => {
    if (!this.#entered) {
      this.#entered = true;
      setImmediate(this.#endTurn);
    } else if (this.#reads.isOpen && !this.#reads.isTransaction) this.#begin.run();
  };

  /** A number that changes with each commit of another connection, of whatever process; of the snapshot if one is open. */
  version(): number {
    return readRow<{ data_version: number }>(this.#version)?.data_version ?? 0;
  }

  /** Called before a commit is acknowledged: whatever is read from now on sees it. */
  readonly refresh = (): void => {
    if (this.#reads.isOpen && this.#reads.isTransaction) this.#end.run();
  };

  readonly #endTurn = (): void => {
    this.#entered = false;
    this.refresh();
  };
}
