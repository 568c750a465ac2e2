import type { ImportOutcome } from '../../users/import/import-users.ts';

/** Writes the report of an import: a line of JSON for each line, and the totals in the last one. */
export class ImportReport {
  readonly #isMinimal: boolean;
  #created = 0;
  #refused = 0;

  /** `isMinimal` leaves out the lines that were stored. */
  constructor(isMinimal: boolean) {
    this.#isMinimal = isMinimal;
  }

  lines(outcomes: readonly ImportOutcome[]): string {
    let text = '';
    for (const outcome of outcomes) {
      if ('id' in outcome) {
        this.#created++;
        if (!this.#isMinimal) text += `{"line":${outcome.line},"id":${outcome.id}}\n`;
      } else {
        this.#refused++;
        text += `${JSON.stringify(outcome)}\n`;
      }
    }
    return text;
  }

  /** The last line: it is there if the whole import was read. `skipped` is the line up to which it was stored before. */
  end(skipped: number): string {
    const totals = { created: this.#created, refused: this.#refused, ...(skipped > 0 ? { skipped } : {}) };
    return `${JSON.stringify(totals)}\n`;
  }
}

/** The line that ends a report in place of the totals where the import could not go on. */
export function stopLine(code: string, reason: string, line?: number): string {
  return `${JSON.stringify({ ...(line === undefined ? {} : { line }), code, reason, stopped: true })}\n`;
}
