import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { ReplayedJob } from '../../inbox/operations.ts';
import { DatabaseDeliveryLog } from '../delivery-log.ts';
import { storedKey } from '../inbox-sql.ts';
import { readRow, readRows } from '../sqlite/connection.ts';
import type { Reader } from '../sqlite/reader.ts';
import type { Step } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { IDS_BETWEEN, jobsJson, SEQ_OF_ID } from './delivery-zones.ts';

const CONTAINS = 'instr(d.body, CAST($9 AS blob)) > 0';

/** The delivery log in SQLite. */
export class SqliteDeliveryLog extends DatabaseDeliveryLog {
  /** Unlimited, because concurrent changes share one commit. */
  readonly maxChanges = Number.POSITIVE_INFINITY;
  readonly #reads: DatabaseSync;
  readonly #reader: Reader | undefined;
  readonly #writes: WriteQueue;
  /** Prepared on first use, by text. */
  readonly #statements = new Map<string, StatementSync>();
  readonly #seqOfId: StatementSync;

  /** Without a `reader`, long reads run on the caller's thread. */
  constructor(reads: DatabaseSync, writes: WriteQueue, reader?: Reader) {
    super({
      exact: `d.seq = (${SEQ_OF_ID})`,
      range: IDS_BETWEEN,
      body: 'd.body',
      size: 'octet_length(d.body)',
      contains: CONTAINS,
    });
    this.#reads = reads;
    this.#reader = reader;
    this.#writes = writes;
    this.#seqOfId = reads.prepare(SEQ_OF_ID);
  }

  protected read(
    text: string,
    values: readonly (string | number | null)[],
  ): MaybePromise<readonly (readonly unknown[])[]> {
    // On the reader thread, because each reads hundreds of bodies or thousands of jobs.
    if (this.#reader !== undefined) return this.#reader.rows({ text: text.replaceAll('$', '?'), values });
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#reads.prepare(text.replaceAll('$', '?'));
      statement.setReturnArrays(true);
      this.#statements.set(text, statement);
    }
    return readRows<readonly unknown[]>(statement, ...values);
  }

  async replay(id: string, jobs: readonly ReplayedJob[], now: number): Promise<boolean> {
    const seq = this.#seqOf(id);
    if (seq === undefined) return false;
    const replacements = jobs.flatMap(({ target, orderKey, replaces }): readonly Step[] => {
      if (replaces === undefined) return [];
      return [{ statement: 'replaceTarget', values: [seq, replaces, target, storedKey(orderKey)] }];
    });
    const targets = jobsJson(jobs);
    const rows = await this.#writes.submit([
      ...replacements,
      { statement: 'keepSuccesses', values: [seq, targets] },
      { statement: 'replayJobs', values: [now, seq, targets] },
      { statement: 'replayUnhandled', values: [now, targets, seq] },
    ]);
    const [reopened = [], added = []] = rows.slice(-2);
    return reopened.length + added.length > 0;
  }

  async discard(id: string, now: number): Promise<boolean> {
    const seq = this.#seqOf(id);
    return seq !== undefined && (await this.#writes.write('discardJobs', now, seq)).length > 0;
  }

  #seqOf(id: string): number | undefined {
    return readRow<{ seq: number }>(this.#seqOfId, id)?.seq;
  }
}
