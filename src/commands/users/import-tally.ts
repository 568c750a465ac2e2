import { printable } from '../../core/quote.ts';
import type { ImportOutcome } from '../../users/import/import-users.ts';
import { counted, note, print, printJson } from '../terminal/output.ts';

/** Maximum number of refused lines that are named: in text, and in JSON. */
const NAMED = 20;
const MAX_EXAMPLES = 10_000;

/** What became of the lines of an import. */
export class ImportTally {
  readonly #skipped: number;
  readonly #examples: Exclude<ImportOutcome, { readonly id: number }>[] = [];
  #created = 0;
  #refused = 0;

  /** `skipped` is the line up to which the import was stored before. */
  constructor(skipped: number) {
    this.#skipped = skipped;
  }

  get refused(): number {
    return this.#refused;
  }

  add(outcomes: readonly ImportOutcome[]): void {
    for (const outcome of outcomes) {
      if ('id' in outcome) this.#created++;
      else if (this.#refused++ < MAX_EXAMPLES) this.#examples.push(outcome);
    }
  }

  /** What was stored until now. */
  soFar(): string {
    return `Imported ${counted(this.#created, 'user', 'users')} before it stopped.`;
  }

  async print(asJson: boolean, isInterrupted: boolean): Promise<void> {
    if (asJson) {
      const { created, refused, skipped, examples } = {
        created: this.#created,
        refused: this.#refused,
        skipped: this.#skipped,
        examples: this.#examples,
      };
      await printJson({ complete: !isInterrupted, created, refused, skipped, examples });
      return;
    }
    for (const { line, reason } of this.#examples.slice(0, NAMED))
      note(`Line ${line}: ${printable(reason)}.`);
    if (this.#refused > NAMED) note(`And ${(this.#refused - NAMED).toLocaleString('en-US')} more.`);
    if (this.#skipped > 0) {
      note(
        `Went on behind line ${this.#skipped.toLocaleString('en-US')}, up to which it was imported before.`,
      );
    }
    const refused = this.#refused === 0 ? '' : `, refused ${counted(this.#refused, 'line', 'lines')}`;
    await print(`Imported ${counted(this.#created, 'user', 'users')}${refused}.\n`);
  }
}
