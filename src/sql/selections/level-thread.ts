import { LIMITS, SelectionLimitError } from '../../relations/selections/limits.ts';
import { SQLITE_ROWS } from '../dialects/row-dialects.ts';
import type { PreparedStatements } from '../sqlite/connection.ts';
import type { ReadAnswer } from '../sqlite/reader.ts';
import { type PagePlan, readAtOnce, readPlan, takeBytes } from './levels.ts';

type Bound = Parameters<PreparedStatements['run']>[1];

/** Reads a page with nested rows on the thread of the reader; returns the answer and the memory to transfer with it. */
export function answerPlan(
  plan: PagePlan,
  statements: PreparedStatements,
): readonly [ReadAnswer, ...ArrayBuffer[]] {
  try {
    const page = readAtOnce(readPlan(plan, SQLITE_ROWS, LIMITS), ({ text, values, maxBytes }) =>
      maxBytes === undefined
        ? statements.run(text, values as Bound)
        : takeBytes(statements.iterate(text, values as Bound), maxBytes),
    );
    const { large, count, first, last, more } = page;
    const around = { count, first, last, more };
    if (large === undefined) return [{ levels: { json: page.json, ...around } }];
    // Copied, because small buffers share a pool of Node that cannot be transferred.
    const bytes = new Uint8Array(large.bytes);
    return [{ levels: { ...around, large: { ...large, bytes } } }, bytes.buffer];
  } catch (error) {
    if (!(error instanceof SelectionLimitError)) throw error;
    return [{ exceeded: { limit: error.limit, path: error.path } }];
  }
}
