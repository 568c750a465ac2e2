import type { SQLInputValue } from 'node:sqlite';
import { StoreUnavailableError } from '../errors.ts';
import { type DatabaseObserver, unobserved } from '../observer.ts';
import type { BatchResult, Row, Step, Write } from './batch.ts';
import type { WriteName } from './write-statements.ts';

/** More writes than this make a batch that would keep its first ones waiting. */
const MAX_BATCH = 1024;

/** Takes a batch to the connection that writes, and calls back once it is committed or has failed. */
export type SendBatch = (writes: readonly Write[], done: (result: BatchResult) => void) => void;

interface Waiting {
  readonly write: Write;
  resolve(rows: readonly (readonly Row[])[]): void;
  reject(error: Error): void;
}

/**
 * Natural group commit: one batch is under way at a time, and whatever gathers meanwhile is the next one.
 * States: idle -> scheduled (the first write of a turn waits for the turn's end) -> writing -> scheduled or idle;
 * refusing is final.
 */
export class WriteQueue {
  readonly #send: SendBatch;
  readonly #onFatal: (error: StoreUnavailableError) => void;
  readonly #observer: DatabaseObserver;
  #waiting: Waiting[] = [];
  #busy = false;
  #refusal: StoreUnavailableError | undefined;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(
    send: SendBatch,
    onFatal: (error: StoreUnavailableError) => void,
    observer: DatabaseObserver = unobserved,
  ) {
    this.#send = send;
    this.#onFatal = onFatal;
    this.#observer = observer;
  }

  /** Resolves to the returned rows once the write is durable; rejects with StoreUnavailableError. */
  async write(statement: WriteName, ...values: readonly SQLInputValue[]): Promise<readonly Row[]> {
    const [rows = []] = await this.writeAll([{ statement, values }]);
    return rows;
  }

  /** Several statements that happen all or none; resolves to the rows that each of them returned. */
  writeAll(write: readonly Step[]): Promise<readonly (readonly Row[])[]> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    const { promise, resolve, reject } = Promise.withResolvers<readonly (readonly Row[])[]>();
    this.#waiting.push({ write, resolve, reject });
    if (!this.#busy) {
      this.#busy = true;
      // The requests that arrived in this turn of the event loop share the first batch.
      setImmediate(this.#flush);
    }
    return promise;
  }

  /** Refuses every waiting and later write, because none can be trusted any more. */
  fail(error: StoreUnavailableError): void {
    if (this.#refusal !== undefined) return;
    this.#refuse(error);
    this.#onFatal(error);
  }

  /** Refuses every later write, because the database is being closed. */
  close(): void {
    if (this.#refusal === undefined) this.#refuse(new StoreUnavailableError('The database is closed'));
  }

  #refuse(error: StoreUnavailableError): void {
    this.#refusal = error;
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
  }

  /** Resolves once nothing waits and nothing is under way. */
  async idle(): Promise<void> {
    if (!this.#busy) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  readonly #flush = (): void => {
    const batch = this.#waiting.splice(0, MAX_BATCH);
    if (batch.length === 0) {
      this.#busy = false;
      this.#idle?.resolve();
      this.#idle = undefined;
      return;
    }
    const began = performance.now();
    this.#send(
      batch.map(({ write }) => write),
      (result) => this.#settle(batch, result, began),
    );
  };

  #settle(batch: readonly Waiting[], { results, fatal }: BatchResult, began: number): void {
    let failed = 0;
    for (const [i, waiting] of batch.entries()) {
      const result = results[i] ?? { error: 'no result' };
      if ('rows' in result) waiting.resolve(result.rows);
      else {
        failed++;
        waiting.reject(new StoreUnavailableError(`The write failed: ${result.error}`));
      }
    }
    this.#observer.batch(batch.length, failed, (performance.now() - began) / 1_000);
    if (fatal !== undefined) this.fail(new StoreUnavailableError(`The file is no longer durable: ${fatal}`));
    this.#flush();
  }
}
