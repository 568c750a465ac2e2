import type { SQLInputValue } from 'node:sqlite';
import { BatchQueue } from '../../batch-queue.ts';
import type { Row, StepRows, Write } from './batch.ts';
import type { WriteName } from './write-statements.ts';

/** The writes of an SQLite database, which one connection commits; the statements of one happen all or none. */
export class WriteQueue extends BatchQueue<Write, StepRows> {
  /** Resolves to the returned rows once the write is durable; rejects with StoreUnavailableError. */
  async write(statement: WriteName, ...values: readonly SQLInputValue[]): Promise<readonly Row[]> {
    const [rows = []] = await this.submit([{ statement, values }]);
    return rows;
  }
}
