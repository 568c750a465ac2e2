import { printable } from '../../core/quote.ts';
import { INTERRUPTED } from '../terminal/interruption.ts';
import { counted, note, print, printJson } from '../terminal/output.ts';
import { type BulkAction, type BulkResult, REFUSALS } from './bulk.ts';

/** The outcome of a bulk operation, and how to print it. */
export interface BulkReport {
  readonly action: BulkAction;
  /** Number of deliveries that were named or matched. */
  readonly matched: number;
  readonly result: BulkResult;
  /** Whether they were named by id: then one that was not changed is a failure. */
  readonly named: boolean;
  readonly json: boolean;
}

/** Prints the result of a bulk operation; resolves to the exit code. */
export async function reportBulk(report: BulkReport): Promise<number> {
  const { result, matched, named, json } = report;
  const { done, stopped } = result;
  await (json ? printJson(summaryOf(report)) : print(`${describe(report).join('\n')}\n`));
  if (stopped === 'interrupted') return INTERRUPTED;
  if (stopped !== undefined) {
    note(`portico: ${stopped.message}`);
    return 1;
  }
  return done === 0 || (named && done < matched) ? 1 : 0;
}

function summaryOf({ action, matched, result }: BulkReport) {
  const { done, refused, examples, stopped } = result;
  return {
    matched,
    [action.done]: done,
    refused: Object.fromEntries(refused),
    examples,
    complete: stopped === undefined,
  };
}

function describe({ action, matched, result, named }: BulkReport): readonly string[] {
  const { done, refused, examples, stopped } = result;
  if (matched === 0) return [`Nothing matches; nothing was ${action.done}.`];
  const lines = [`${counted(done, 'delivery', 'deliveries')} ${action.done}.`];
  for (const [reason, count] of named ? [] : refused) {
    lines.push(`${counted(count, 'delivery was', 'deliveries were')} left: ${REFUSALS[reason]}.`);
  }
  if (named) lines.push(...examples.map(({ id, reason }) => `${printable(id)}: ${REFUSALS[reason]}.`));
  if (stopped !== undefined) {
    const seen = done + [...refused.values()].reduce((sum, count) => sum + count, 0);
    lines.push(
      `Stopped after ${seen.toLocaleString('en-US')} of ${matched.toLocaleString('en-US')}; the others are unchanged. Run it again to go on.`,
    );
  }
  return lines;
}
