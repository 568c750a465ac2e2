import type { Row, RowResult } from './row.ts';
import { Workbench, type WorkbenchOptions } from './workbench.ts';

/** What came of a row. */
export type RowOutcome =
  | { readonly row: Row; readonly result: RowResult; readonly seconds: number }
  | { readonly row: Row; readonly error: string };

/** Runs a row and stops what it has started. A row that fails does not keep the others from running. */
export async function runRow(row: Row, options: WorkbenchOptions): Promise<RowOutcome> {
  const begin = performance.now();
  try {
    await using bench = new Workbench(options);
    const result = await row.run(bench);
    return { row, result, seconds: (performance.now() - begin) / 1_000 };
  } catch (error) {
    return { row, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
