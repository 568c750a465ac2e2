import type { Row, RowResult } from './row.ts';
import { Workbench, type WorkbenchOptions } from './workbench.ts';

/** What came of a row. */
export type RowOutcome =
  | { readonly row: Row; readonly result: RowResult }
  | { readonly row: Row; readonly error: string };

/** Runs a row and stops what it has started. A row that fails does not keep the others from running. */
export async function runRow(row: Row, options: WorkbenchOptions): Promise<RowOutcome> {
  try {
    await using bench = new Workbench(options);
    return { row, result: await row.run(bench) };
  } catch (error) {
    return { row, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
