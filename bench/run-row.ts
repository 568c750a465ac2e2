import type { Row, RowResult } from './row.ts';
import { Workbench, type WorkbenchOptions } from './workbench.ts';

/** The result of a row, or its error. */
export type RowOutcome =
  | { readonly row: Row; readonly result: RowResult; readonly seconds: number }
  | { readonly row: Row; readonly error: string };

/**
 * Runs a row and stops everything that it started. A failure is an outcome too, so that the other rows still
 * run.
 */
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
