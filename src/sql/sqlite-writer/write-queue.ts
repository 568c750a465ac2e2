import type { SQLInputValue } from 'node:sqlite';
import { BatchQueue } from '../batch-queue.ts';
import type { Row, StepRows, Write } from './batch.ts';

/** The queue of all writes to an SQLite database; the statements of one write commit together. */
export class WriteQueue extends BatchQueue<Write, StepRows> {
  /** Runs one statement. Resolves to its rows once it is durable; rejects with StoreUnavailableError. */
  async write(statement: string, ...values: readonly SQLInputValue[]): Promise<readonly Row[]> {
    const [rows = []] = await this.submit([{ statement, values }]);
    return rows;
  }
}
